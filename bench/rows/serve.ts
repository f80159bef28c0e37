import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import type { Load, Published, Publisher, Received } from "../followers.ts";
import { median } from "../statistics.ts";

/** 500 followers of 50 live sessions, 20 events per second each: 10,000 deliveries per second. */
const SESSIONS = 50;
const FOLLOWERS_EACH = 10;
const PER_SECOND = 20;

/** How late a follower of a session has each record, against a loop that writes the same bytes to the same clients. */
export async function serveRow(bench: Bench, results: Results): Promise<void> {
  const load: Load = {
    sessions: SESSIONS,
    followersEach: FOLLOWERS_EACH,
    perSecond: PER_SECOND,
    seconds: bench.size(3, 2),
    warmSeconds: 3,
  };
  const found: { readonly ours: Round; readonly bare: Round }[] = [];
  for (let round = 0; round < bench.size(5, 3); round++) {
    const ours = await measureRound(bench, "serve", load);
    found.push({ ours, bare: await measureRound(bench, "bare", load) });
  }
  const middle = (value: (round: Round) => number, side: "ours" | "bare"): string =>
    median(found.map((one) => value(one[side]))).toFixed(1);
  results.figures.push({
    row: "serve",
    what: `${SESSIONS * FOLLOWERS_EACH} followers of ${SESSIONS} sessions, ${PER_SECOND} events/s each: p95 delay, against a bare loop`,
    bound: { atMost: 2 },
    unit: "×",
    rounds: found.map(({ ours, bare }) => ours.p95Ms / bare.p95Ms),
    note:
      `p95 ${middle(({ p95Ms }) => p95Ms, "ours")} against ${middle(({ p95Ms }) => p95Ms, "bare")} ms; ` +
      `server's CPU ${middle(({ cpuMs }) => cpuMs / load.seconds, "ours")} against ${middle(({ cpuMs }) => cpuMs / load.seconds, "bare")} ms/s; ` +
      "none lost or doubled",
  });
  results.peers.push({
    what: "memory of the server for each follower",
    unit: "MB",
    rounds: found.map(({ ours }) => ours.bytesPerFollower / 1e6),
    note: `bare loop: ${middle(({ bytesPerFollower }) => bytesPerFollower / 1000, "bare")} kB`,
  });
}

type Round = Published & Received;

async function measureRound(bench: Bench, task: "serve" | "bare", load: Load): Promise<Round> {
  const server = bench.spawnChild([task, bench.path("served"), JSON.stringify(load)], ["--expose-gc"]);
  const serverLines = linesOf(server);
  const publisher = JSON.parse(await serverLines.next()) as Publisher;
  const clients = bench.spawnChild(["follow", JSON.stringify(publisher), JSON.stringify(load)]);
  const clientLines = linesOf(clients);
  await clientLines.next();
  server.stdin!.write("go\n");
  const received = JSON.parse(await clientLines.next()) as Received;
  server.stdin!.write("end\n");
  const published = JSON.parse(await serverLines.next()) as Published;
  await Promise.all([ended(server), ended(clients)]);
  if (received.lost > 0 || received.doubled > 0)
    throw new Error(`${task}: ${received.lost} events lost, ${received.doubled} doubled`);
  return { ...published, ...received };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

function linesOf(child: ChildProcess): { next(): Promise<string> } {
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return {
    next: async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the child ended with ${child.exitCode}`);
      return value;
    },
  };
}
