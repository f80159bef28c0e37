import { parseArgs } from "node:util";
import { newSeed, runCommand, wholeNumber } from "../../../testkit/src/torture/command-line.ts";
import { Progress } from "../../../testkit/src/torture/progress.ts";
import { type Server, startServer } from "../server/server.ts";
import { failOverDrill } from "./failover.ts";
import { fleetStorm } from "./fleet-storm.ts";
import { storm } from "./storm.ts";

const COMMAND = "npm run storm --";

const HELP = `Kills workers, backends and the server of a PostgreSQL store with SIGKILL, in
mid-append. Then checks that everything that was acknowledged is there, in
order and once, that no worker wrote after its replacement, and that a follower
missed nothing and saw nothing twice. It starts a server of its own.

With --fleet, ten workers claim and finish interrupted sessions while they, the
backends and the server are killed. Then checks that each turn was finished
once, that no tool ran twice that must not, and that the rows of tools in
transactions are there exactly if their outcome is.

With --failover, workers append to a primary with a synchronous standby. The
primary is killed, the standby is promoted and gets a standby of its own, again
and again. Then checks that everything that was acknowledged is there.

  ${COMMAND} [options]

  --fleet       the fleet, as above
  --failover    the fail-overs, as above
  --kills <n>   how often to kill (default 500; with --fleet, 100; with
                --failover, 20)
  --seed <n>    repeats the plan of an earlier run
  --help

Exit code 0: every promise was kept. 1: one was broken. 2: wrong usage. The seed
fixes who is killed; the instant of a death is the machine's.
`;

interface Run {
  readonly kills: number;
  readonly seed: number;
  readonly signal: AbortSignal;
  readonly onKill: (done: number) => void;
}

interface Verdict {
  readonly sums: readonly string[];
  readonly faults: readonly string[];
  readonly kept: string;
}

function killedWords(kinds: Readonly<Record<"worker" | "backend" | "backendKilled" | "server", number>>): string {
  return `  killed: ${kinds.worker} workers, connections of a third of all backends ${kinds.backend} times, ${kinds.backendKilled} backends with SIGKILL, the server ${kinds.server} times`;
}

async function appends(server: Server, run: Run): Promise<Verdict> {
  const { kinds, lives, acknowledged, recovered, softLost, faults } = await storm(server, run);
  const counts = `  workers started ${lives} · acknowledged ${acknowledged} · recovered ${recovered} · of "process", taken by a crash of the server ${softLost}`;
  return { sums: [killedWords(kinds), counts], faults, kept: "No acknowledged record was lost." };
}

async function fleet(server: Server, run: Run): Promise<Verdict> {
  const { kinds, lives, sessions, ran, again, faults } = await fleetStorm(server, run);
  const counts = `  workers started ${lives} · turns finished ${sessions} · tools that must run once ${ran.once}, that may run again ${ran.again} (${again} did), in transactions ${ran.together}`;
  return { sums: [killedWords(kinds), counts], faults, kept: "Each turn was finished once." };
}

/** It starts its servers itself. */
async function failOvers(run: Run): Promise<Verdict> {
  const options = { failOvers: run.kills, seed: run.seed, signal: run.signal, onFailOver: run.onKill };
  const { failOvers: count, foundStandby, acknowledged, recovered, faults } = await failOverDrill(options);
  const counts = `  fail-overs ${count}, workers sent to the standby before it was promoted ${foundStandby} · acknowledged ${acknowledged} · recovered ${recovered}`;
  return { sums: [counts], faults, kept: "No acknowledged record was lost." };
}

async function withServer(work: (server: Server) => Promise<Verdict>): Promise<Verdict> {
  const server = await startServer(["restart_after_crash=on", "max_connections=200"]);
  try {
    return await work(server);
  } finally {
    await server.stop();
  }
}

/** What to run, and how often it kills if nobody says. */
const RUNS = {
  appends: { option: "", kills: 500, what: "kills of workers, backends and the server" },
  fleet: { option: " --fleet", kills: 100, what: "kills of workers, backends and the server" },
  failover: { option: " --failover", kills: 20, what: "fail-overs" },
} as const;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      fleet: { type: "boolean" },
      failover: { type: "boolean" },
      kills: { type: "string" },
      seed: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const name = values.failover === true ? "failover" : values.fleet === true ? "fleet" : "appends";
  const { option, what, kills: usual } = RUNS[name];
  const kills = wholeNumber("kills", values.kills, usual);
  const seed = wholeNumber("seed", values.seed, newSeed());
  process.stdout.write(`${kills} ${what}, seed ${seed}\n`);
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const progress = new Progress(kills);
  const run = { kills, seed, signal: stop.signal, onKill: (done: number): void => progress.show(done, "postgres") };
  const runs = {
    appends: () => withServer((server) => appends(server, run)),
    fleet: () => withServer((server) => fleet(server, run)),
    failover: () => failOvers(run),
  };
  const { sums, faults, kept } = await runs[name]();
  progress.clear();
  const lines = [...sums, ...faults.map((fault) => `  fault: ${fault}`)];
  process.stdout.write(`${lines.join("\n")}\n`);
  const verdict = faults.length > 0 ? "BROKEN." : kept;
  process.stdout.write(`${stop.signal.aborted ? "Stopped early. " : ""}${verdict}\n`);
  process.stdout.write(`Repeat with: ${COMMAND}${option} --kills ${kills} --seed ${seed}\n`);
  return faults.length > 0 ? 1 : 0;
}

await runCommand("storm", main);
