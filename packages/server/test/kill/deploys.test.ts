import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import { type JournalRecord, openStore } from "holdfast";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../../../cli/test/command.ts";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { seededRandom } from "../../../testkit/src/simulation/random.ts";
import { HoldfastClient } from "../../src/client/index.ts";
import { PATIENT } from "../server-stage.ts";

/** A real server that is replaced again and again in the middle of one turn. */

const seed = seedOf(import.meta.url, "kill");

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

class Deployed implements AsyncDisposable {
  readonly home: Home = temporaryHome();
  readonly port: number;
  #child: ChildProcess | null = null;

  constructor(port: number) {
    this.port = port;
  }

  async start(): Promise<void> {
    const args = ["serve", "--port", String(this.port), "--allow", "shell", "--grace", "60"];
    const child = this.home.start(args, { env: { HOLDFAST_OFFLINE_DELAY_MS: "2" } });
    this.#child = child;
    child.stderr.resume();
    await once(child.stdout, "data");
    child.stdout.resume();
  }

  get client(): HoldfastClient {
    const token = readFileSync(join(this.home.path, "state/holdfast/server/token"), "utf8").trim();
    return new HoldfastClient({ url: `http://127.0.0.1:${this.port}`, token });
  }

  /** Ends it; `release` is called when the signal has been sent. */
  async end(signal: "SIGTERM" | "SIGKILL", release = (): void => {}): Promise<void> {
    const child = this.#child!;
    const exit = once(child, "exit");
    child.kill(signal);
    release();
    expect(await exit).toEqual(signal === "SIGTERM" ? [0, null] : [null, "SIGKILL"]);
  }

  /** What the tools have done. */
  get log(): string[] {
    const path = join(this.home.work, "log");
    return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child?.exitCode === null && this.#child.signalCode === null) await this.end("SIGKILL");
    this.home[Symbol.dispose]();
  }
}

/** Each step says that it began, waits for its file, and says that it ended. */
function taskOf(steps: number): string {
  const numbers = Array.from({ length: steps }, (_, n) => n + 1);
  const step = (n: number): string =>
    `${n}. run echo begin-${n} >> log; until test -e go-${n}; do sleep 0.02; done; echo end-${n} >> log`;
  return numbers.map(step).join(" ");
}

async function begun(server: Deployed, steps: number): Promise<string> {
  const { client } = server;
  const { id } = await client.call("createSession", { body: { cwd: server.home.work } });
  await client.call("startTurn", { params: { id }, body: { text: taskOf(steps) } });
  return id;
}

const release = (server: Deployed, step: number) => (): void => writeFileSync(join(server.home.work, `go-${step}`), "");

async function judged(server: Deployed, id: string, steps: number): Promise<readonly JournalRecord[]> {
  const { client } = server;
  await expect
    .poll(async () => (await client.call("getSession", { params: { id } })).status, { ...PATIENT, timeout: 120_000 })
    .toBe("idle");
  await server.end("SIGTERM");
  await using store = await openStore(server.home.store);
  const { messages, interruption } = await store.read<ModelMessage>(id);
  expect(interruption).toBe(null);
  expect(validateAiSdk([...messages, { role: "user", content: "And now?" }])).toEqual([]);
  const lines = Array.from({ length: steps }, (_, n) => [`begin-${n + 1}`, `end-${n + 1}`]).flat();
  expect(server.log).toEqual(lines);
  const records = await Array.fromAsync(store.history(id));
  expect(records.filter(({ kind }) => kind === "turn.ended")).toMatchObject([{ turn: 1, outcome: "completed" }]);
  return records;
}

const ofKind = (records: readonly JournalRecord[], kind: string): JournalRecord[] =>
  records.filter((record) => record.kind === kind);

test("twenty deploys in one turn: it is finished, no tool ran twice, and nobody was told of an interruption", async () => {
  await using server = new Deployed(await freePort());
  await server.start();
  const random = seededRandom(seed);
  const steps = 30;
  const id = await begun(server, steps);
  let deploys = 0;
  for (let step = 1; step <= steps; step++) {
    const what = `seed ${seed}, deploy ${++deploys}`;
    await expect.poll(() => server.log, { ...PATIENT, message: what }).toContain(`begin-${step}`);
    if (deploys % 2 === 0) {
      // In a tool, which is waited for.
      await server.end("SIGTERM", release(server, step));
    } else {
      // Somewhere behind that tool: in its record, in the next answer, or in the next tool.
      release(server, step)();
      await sleep(random.below(120));
      await server.end("SIGTERM", release(server, step + 1));
      if (server.log.includes(`end-${step + 1}`)) step++;
    }
    await server.start();
  }
  expect(deploys).toBeGreaterThanOrEqual(20);
  const records = await judged(server, id, steps);
  const starts = ofKind(records, "tool.started").map(({ call }) => call);
  expect(new Set(starts).size).toBe(starts.length);
  expect(starts).toHaveLength(steps);
  expect(ofKind(records, "repair")).toEqual([]);
  expect(JSON.stringify(records)).not.toMatch(/"synthetic"|outcome.unknown|was interrupted/);
  expect(ofKind(records, "turn.suspended").length).toBeGreaterThanOrEqual(deploys - 1);
});

test("deploys and kills in one turn: what was cut off is reported, and nothing unsafe ran twice", async () => {
  await using server = new Deployed(await freePort());
  await server.start();
  const random = seededRandom(seed + 1);
  const steps = 12;
  const id = await begun(server, steps);
  let killed = 0;
  for (let step = 1; step <= steps; step++) {
    const what = `seed ${seed}, step ${step}`;
    await expect.poll(() => server.log, { ...PATIENT, message: what }).toContain(`begin-${step}`);
    const isKilled = step % 4 === 0;
    if (isKilled) {
      killed++;
      await server.end("SIGKILL");
      release(server, step)();
    } else if (random.below(2) === 0) await server.end("SIGTERM", release(server, step));
    else {
      release(server, step)();
      continue;
    }
    await server.start();
    if (!isKilled) continue;
    const params = { id };
    const { status, interruption } = await server.client.call("getSession", { params });
    expect([status, interruption?.how.kind], what).toEqual(["interrupted", "killed"]);
    await server.client.call("finishTurn", { params, body: {} });
  }
  const records = await judged(server, id, steps);
  const starts = ofKind(records, "tool.started").map(({ call }) => call);
  expect(new Set(starts).size).toBe(starts.length);
  expect(killed).toBe(steps / 4);
  expect(ofKind(records, "turn.resumed").length).toBeGreaterThanOrEqual(killed);
});
