import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type JournalRecord, openStore } from "holdfast";
import { openFolderStore, openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import type { Runtime } from "../../../../scripts/runtimes.ts";
import { place } from "../place.ts";
import { everyRuntime, needsRuntime } from "./run.ts";

interface Agent {
  readonly address: string;
  /** The id of its session, when it has been ready. */
  readonly ready: Promise<string>;
  readonly died: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** The highest number that was acknowledged. */
  acknowledged(): number;
  said(): readonly string[];
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  tell(): void;
}

function startAgent({ command }: Runtime, address: string, host: string): Agent & AsyncDisposable {
  const [file, ...flags] = command as [string, ...string[]];
  const child = spawn(file, [...flags, join(import.meta.dirname, "agent.ts"), address, host], {
    env: { ...process.env, NO_COLOR: "1" },
  });
  const said: string[] = [];
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ready = Promise.withResolvers<string>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    said.push(line);
    if (line.startsWith("ready ")) ready.resolve(line.slice("ready ".length));
  });
  const died = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      ready.reject(new Error(`it ended before it was ready: ${stderr}`));
      resolve({ code, signal });
    });
  });
  ready.promise.catch(() => undefined);
  return {
    address,
    ready: ready.promise,
    died,
    acknowledged: () =>
      Math.max(0, ...said.filter((line) => line.startsWith("ack ")).map((line) => Number(line.slice(4)))),
    said: () => said,
    stderr: () => stderr,
    kill: (signal) => child.kill(signal),
    tell: () => child.stdin.write("now\n"),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await died;
    },
  };
}

async function recordsOf(agent: Agent): Promise<readonly JournalRecord[]> {
  const path = agent.address.replace(/^sqlite:/, "");
  await using store = await (path === agent.address ? openFolderStore(path) : openSqliteStore(path));
  return (await store.read(await agent.ready)).records;
}

function signalsIn(records: readonly JournalRecord[]): unknown[] {
  const found = records.filter(({ kind }) => kind === "signal");
  return found.map(({ signal, error }) => (error === undefined ? { signal } : { signal, error }));
}

/** Everything that the agent was told is durable, in order and without a gap. */
function expectNothingLost(agent: Agent, records: readonly JournalRecord[]): void {
  const contents = records
    .filter(({ kind }) => kind === "message")
    .map(({ message }) => (message as { content: string }).content);
  const numbers = contents.map(Number).filter((n) => !Number.isNaN(n));
  expect(agent.acknowledged()).toBeGreaterThanOrEqual(3);
  expect(numbers.length).toBeGreaterThanOrEqual(agent.acknowledged());
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
}

describe.each(everyRuntime)("$name: what guard promises", (runtime) => {
  const signals = (["SIGTERM", "SIGHUP", "SIGINT"] as const).flatMap((signal) =>
    ["folder", "sqlite"].map((kind) => [signal, kind] as const),
  );

  test.for(signals)("C6: %s is recorded once in a %s store, and ends the process", async ([signal, kind], context) => {
    needsRuntime(context, runtime);
    using here = place();
    const path = join(here.path, "store");
    await using agent = startAgent(runtime, kind === "folder" ? path : `sqlite:${path}`, "plain");
    const id = await agent.ready;
    agent.kill(signal);
    expect(await agent.died).toEqual({ code: null, signal });
    expect(agent.stderr()).toBe("");
    const records = await recordsOf(agent);
    // Deno delivers the signal that ends the process a moment later: the agent may append once more meanwhile.
    if (!runtime.name.startsWith("deno")) expect(records.at(-1)).toMatchObject({ kind: "signal", signal });
    expect(signalsIn(records)).toEqual([{ signal }]);
    expectNothingLost(agent, records);
    await using store = await openStore(agent.address);
    await using session = await store.resume(id);
    expect(session.interruption?.how).toEqual({ kind: "signal", signal });
  });

  test("R17: a host that listens drains, and exits with its own status", async (context) => {
    needsRuntime(context, runtime);
    using here = place();
    await using agent = startAgent(runtime, join(here.path, "store"), "drains");
    const id = await agent.ready;
    agent.kill("SIGTERM");
    expect(await agent.died).toEqual({ code: 3, signal: null });
    const records = await recordsOf(agent);
    expect(signalsIn(records)).toEqual([{ signal: "SIGTERM" }]);
    expectNothingLost(agent, records);
    await using store = await openStore(agent.address);
    expect((await store.read(id)).interruption).toBeNull();
  });

  test.for([
    ["throws", "uncaughtException", "nobody caught this"],
    ["rejects", "unhandledRejection", "nobody awaited this"],
  ] as const)(
    "C6: an agent that %s: recorded; status 1, and the error is printed",
    async ([host, signal, error], context) => {
      needsRuntime(context, runtime);
      using here = place();
      await using agent = startAgent(runtime, join(here.path, "store"), host);
      await agent.ready;
      agent.tell();
      expect(await agent.died).toEqual({ code: 1, signal: null });
      expect(agent.stderr()).toContain(error);
      const records = await recordsOf(agent);
      expect(signalsIn(records)).toEqual([{ signal, error }]);
      expectNothingLost(agent, records);
    },
  );

  test("a host that handles its rejections lives on, and nothing is recorded of them", async (context) => {
    needsRuntime(context, runtime);
    using here = place();
    await using agent = startAgent(runtime, join(here.path, "store"), "handles");
    await agent.ready;
    agent.tell();
    await expect.poll(() => agent.said().includes("handled")).toBe(true);
    agent.kill("SIGTERM");
    expect(await agent.died).toEqual({ code: null, signal: "SIGTERM" });
    expect(signalsIn(await recordsOf(agent))).toEqual([{ signal: "SIGTERM" }]);
  });

  test.for(["folder", "sqlite"])(
    "nothing of a %s store keeps a process alive that has nothing to do",
    async (kind, context) => {
      needsRuntime(context, runtime);
      using here = place();
      const path = join(here.path, "store");
      await using agent = startAgent(runtime, kind === "folder" ? path : `sqlite:${path}`, "idle");
      await agent.ready;
      expect(await agent.died).toEqual({ code: 0, signal: null });
      expect(signalsIn(await recordsOf(agent))).toEqual([]);
      expect(agent.stderr()).toBe("");
    },
  );
});
