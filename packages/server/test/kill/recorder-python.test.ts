import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { validateAnthropic } from "@holdfast/testkit";
import { openStore, type Summary } from "holdfast";
import { describe, expect, test } from "vitest";
import { type Home, temporaryHome } from "../../../cli/test/command.ts";

/** examples/recorder.py and the server that records for it, as a user runs them, both killed. */

const EXAMPLE = resolve(import.meta.dirname, "../../../../examples/recorder.py");
const python = spawnSync("python3", ["--version"]).status === 0;
if (!python) console.warn("not run: the recorder's example needs python3");

interface Ran {
  readonly lines: readonly string[];
  readonly stderr: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** A server that can be killed and started again at the same address. */
class Served implements AsyncDisposable {
  readonly home: Home = temporaryHome();
  readonly port: number;
  #child: ChildProcessWithoutNullStreams | null = null;

  constructor(port: number) {
    this.port = port;
  }

  async start(): Promise<void> {
    this.#child = this.home.start(["serve", "--port", String(this.port)]);
    this.#child.stdout.resume();
    this.#child.stderr.resume();
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${this.port}/openapi.json`).catch(() => null);
      if (answer?.ok) return;
      if (this.#child.exitCode !== null) throw new Error(`the server ended with ${this.#child.exitCode}`);
      await sleep(20);
    }
  }

  async kill(): Promise<void> {
    const child = this.#child!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  get token(): string {
    return readFileSync(join(this.home.path, "state/holdfast/server/token"), "utf8").trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.home[Symbol.dispose]();
  }
}

/** Runs the example to its end, or until `isOver` says of a line that it is to be killed there. */
async function run({ home, port, token }: Served, isOver: (line: string) => boolean): Promise<Ran> {
  const child = spawn("python3", [EXAMPLE], {
    cwd: home.work,
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      HOLDFAST_SERVER: `http://127.0.0.1:${port}`,
      HOLDFAST_TOKEN: token,
      HOLDFAST_PAUSE: "0.05",
    },
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const lines: string[] = [];
  const closed = once(child, "close");
  for await (const line of createInterface(child.stdout)) {
    lines.push(line);
    if (isOver(line)) child.kill("SIGKILL");
  }
  const [code, signal] = (await closed) as [number | null, NodeJS.Signals | null];
  return { lines, stderr, code, signal };
}

/** What must be true whenever the agent has finished, however often it and the server were killed. */
async function judge({ home }: Served, runs: readonly Ran[]): Promise<void> {
  await using store = await openStore(home.store);
  const { sessions } = await store.list({ empty: true });
  expect(sessions).toHaveLength(1);
  const [{ id }] = sessions as [Summary];
  const { messages, entries, interruption } = await store.read<{ role: string; content: unknown }>(id);
  expect(interruption).toBe(null);
  expect(validateAnthropic({ messages }, { prefill: true })).toEqual([]);
  // Acknowledged means recorded.
  const history = await Array.fromAsync(store.history(id));
  const recorded = new Set(history.map(({ seq }) => seq));
  const acknowledged = runs.flatMap(({ lines }) =>
    lines.flatMap((line) => /^acknowledged (\d+)$/.exec(line)?.slice(1).map(Number) ?? []),
  );
  expect(acknowledged.length).toBeGreaterThan(0);
  for (const seq of acknowledged) expect(recorded).toContain(seq);
  // The conversation was compacted, each time once: none is longer than the limit and one more step.
  const epochs = history.filter(({ kind }) => kind === "epoch");
  expect(epochs.length).toBeGreaterThan(0);
  expect(runs.flatMap(({ lines }) => lines.filter((line) => line.startsWith("compacted "))).length).toBeLessThanOrEqual(
    epochs.length,
  );
  expect(entries.length).toBeLessThanOrEqual(8);
  const text = JSON.stringify(history);
  const calls = new Set(text.match(/call_[0-9a-f]{12}/g));
  const file = join(home.work, "stars.txt");
  const stars = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
  // No tool ran twice, and none that the conversation does not know.
  expect(new Set(stars).size).toBe(stars.length);
  for (const star of stars) expect(calls).toContain(star);
  expect(stars.length).toBeGreaterThanOrEqual(6);
  // Calls that were cut off were settled, so the model knows of every star.
  expect(JSON.stringify(messages.at(-1))).toContain(`I know ${stars.length} stars.`);
}

describe.skipIf(!python)("an agent in Python that records over HTTP", () => {
  test.each(["answer", "answered", "tool", "ran", "compacting", "compacted"])(
    "killed at %s, it goes on with valid messages",
    async (point) => {
      await using served = new Served(await freePort());
      await served.start();
      let isKilled = false;
      const first = await run(served, (line) => {
        if (isKilled || !line.startsWith(`${point}:`)) return false;
        isKilled = true;
        return true;
      });
      expect(first.signal).toBe("SIGKILL");
      const second = await run(served, () => false);
      expect(second, second.stderr).toMatchObject({ code: 0 });
      if (point === "tool" || point === "ran")
        expect(second.lines.join("\n")).toMatch(/count_star call_\w+: outcome-unknown/);
      if (point === "answered") expect(second.lines.join("\n")).toMatch(/count_star call_\w+: never-started/);
      await judge(served, [first, second]);
    },
  );

  test("the server is killed again and again, and the agent goes on by itself", async () => {
    await using served = new Served(await freePort());
    await served.start();
    let left = 4;
    let lines = 0;
    let killing: Promise<void> | null = null;
    const ran = await run(served, () => {
      lines += 1;
      if (left > 0 && killing === null && lines % 5 === 0) {
        left -= 1;
        killing = served
          .kill()
          .then(() => served.start())
          .finally(() => {
            killing = null;
          });
      }
      return false;
    });
    await killing;
    expect(ran, ran.stderr).toMatchObject({ code: 0 });
    expect(left).toBeLessThan(4);
    expect(ran.lines.join("\n")).toContain("again: RECORDER_UNKNOWN");
    await judge(served, [ran]);
  });

  test("both are killed at random", async () => {
    const seed = Number(process.env["HOLDFAST_SEED"] ?? Math.floor(Math.random() * 1e9));
    console.log(
      `seed ${seed}: HOLDFAST_SEED=${seed} npx vitest run --project kill packages/server/test/kill/recorder-python.test.ts`,
    );
    let state = seed;
    const random = (): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
      return state / 0x80_00_00_00;
    };
    await using served = new Served(await freePort());
    await served.start();
    const runs: Ran[] = [];
    for (let life = 0; life < 12; life++) {
      // The last lives are left alone.
      const isLast = life > 8;
      const agentDiesAt = isLast ? Number.POSITIVE_INFINITY : 1 + Math.floor(random() * 14);
      const serverDiesAt = isLast || random() < 0.5 ? Number.POSITIVE_INFINITY : 1 + Math.floor(random() * 10);
      let lines = 0;
      let restart: Promise<void> | null = null;
      const ran = await run(served, () => {
        lines += 1;
        if (lines === serverDiesAt) restart = served.kill().then(() => served.start());
        return lines === agentDiesAt;
      });
      await restart;
      runs.push(ran);
      if (ran.code === 0) break;
      expect(ran.signal, ran.stderr).toBe("SIGKILL");
    }
    expect(runs.at(-1), runs.at(-1)!.stderr).toMatchObject({ code: 0 });
    await judge(served, runs);
  });
});
