import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import { programBeside, temporaryPlace, Victim } from "@holdfast/testkit/internal/kill";
import { type AnthropicMessage, type OpenCall, openStore } from "holdfast";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { membersOf } from "../../src/tools/shell/process-groups.ts";
import { findCommand, isRunning, stopGroup, waitForCommand } from "../../src/tools/shell/surviving-commands.ts";
import type { Job, Said } from "./processes-agent.ts";

/**
 * R7b: an agent is killed with SIGKILL while its tool runs a command. What became of the command is found out, and is
 * true.
 */

const seed = seedOf(import.meta.url, "kill");
const program = programBeside(import.meta.url, "processes-agent");
const caches = temporaryPlace();
const spawned = { env: { NODE_COMPILE_CACHE: join(caches.path, "compile-cache") } };
let place: ReturnType<typeof temporaryPlace>;
let cwd: string;
let outputs: string;

beforeAll(async () => {
  // Node keeps what it compiled only when a process ends in order.
  const first = temporaryPlace();
  const job = {
    address: join(first.path, "store"),
    cwd: first.path,
    outputs: join(first.path, "outputs"),
    command: "true",
  };
  await new Victim<Said>(program, { ...job, at: "nowhere" } satisfies Job, spawned).died;
  first[Symbol.dispose]();
});
afterAll(() => caches[Symbol.dispose]());
beforeEach(() => {
  place = temporaryPlace();
  cwd = join(realpathSync(place.path), "work");
  outputs = join(cwd, "../outputs");
  mkdirSync(cwd);
});
afterEach(() => place[Symbol.dispose]());

const address = (): string => join(cwd, "../store");
const does = (name: string): boolean => existsSync(join(cwd, name));
const put = (name: string): void => writeFileSync(join(cwd, name), "");

function agent(at: Job["at"], command: string): Victim<Said> {
  return new Victim<Said>(program, { address: address(), cwd, outputs, command, at } satisfies Job, spawned);
}

/** Lets an agent come to a place, and kills it there. Answers the call that it left open, and its session. */
async function killed(at: Job["at"], command: string): Promise<{ call: OpenCall; session: string; pid: number }> {
  await using victim = agent(at, command);
  await victim.until("at");
  victim.kill();
  expect((await victim.died).signal).toBe("SIGKILL");
  const { session } = await victim.until("session");
  const { pid } = await victim.until("process");
  return { call: await openCall(session), session, pid };
}

async function openCall(session: string): Promise<OpenCall> {
  await using store = await openStore(address(), { recordsToolStarts: true });
  const reading = await store.read<AnthropicMessage>(session);
  const [call] = reading.interruption!.calls;
  expect(call).toMatchObject({ id: "call_0", name: "shell", state: "outcome-unknown", replay: "never" });
  return call!;
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries > 2000) throw new Error(`never came: ${what}`);
    await passed(5);
  }
}

const WAITS = "echo begun > begun; echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 5";

describe("killed before the gate was opened: the command never began", () => {
  test("before its process was recorded", async () => {
    const { call, pid } = await killed("spawned", "touch effect");
    expect(call).not.toHaveProperty("process");
    await until("the end of what waited at the gate", async () => (await membersOf(pid)).length === 0);
    expect(await findCommand(outputs, call.id, call.process)).toMatchObject({ kind: "not-begun", running: false });
    expect(does("effect")).toBe(false);
  });

  test("after its process was recorded", async () => {
    const { call, pid } = await killed("recorded", "touch effect");
    expect(call.process).toMatchObject({ pid, group: true });
    const found = await waitForCommand(outputs, call.id, call.process!, { lookMs: 5 });
    expect(found).toMatchObject({ kind: "not-begun", running: false, output: "" });
    await until("the end of what waited at the gate", async () => (await membersOf(pid)).length === 0);
    expect(does("effect")).toBe(false);
  });
});

describe("killed while the command runs", () => {
  test("it still runs; waited for, its true outcome ends the turn's call", async () => {
    const { call, session } = await killed("printed", WAITS);
    const process = call.process!;
    expect(await findCommand(outputs, call.id, process)).toMatchObject({
      kind: "running",
      running: true,
      output: "one\n",
    });
    const waiting = waitForCommand(outputs, call.id, process, { lookMs: 5 });
    put("go");
    const found = await waiting;
    expect(found).toMatchObject({ kind: "ended", exitCode: 5, shown: "one\ntwo\n[exit status 5]" });
    await using store = await openStore(address(), { recordsToolStarts: true });
    const resumed = await store.resume<AnthropicMessage>(session);
    const turn = await resumed.resumeTurn({ calls: () => ({ value: found.shown }) });
    expect(JSON.stringify(resumed.messages)).toContain("one\\ntwo\\n[exit status 5]");
    expect(turn.open).toEqual([]);
  });

  test("it still runs; stopped, the whole group is gone, and nothing is claimed of its outcome", async () => {
    const { call } = await killed("printed", `sleep 300 & ${WAITS}`);
    const process = call.process!;
    expect((await membersOf(process.pid)).length).toBeGreaterThan(2);
    expect(await stopGroup(process)).toBe(true);
    expect(await membersOf(process.pid)).toEqual([]);
    expect(await findCommand(outputs, call.id, process)).toMatchObject({
      kind: "unknown",
      running: false,
      output: "one\n",
    });
    expect(await stopGroup(process)).toBe(false);
  });

  test("it has ended since, with nobody there to see it", async () => {
    const { call } = await killed("printed", WAITS);
    put("go");
    await until("its end", async () => !(await isRunning(call.process!)));
    const found = await findCommand(outputs, call.id, call.process);
    expect(found).toMatchObject({ kind: "ended", exitCode: 5, output: "one\ntwo\n" });
  });
});

test("killed when the command had ended, and its outcome was not recorded yet: it is found, word for word", async () => {
  await using victim = agent("ended", "seq 1 20000; exit 3");
  await victim.until("at");
  victim.kill();
  await victim.died;
  const { text } = await victim.until("result");
  const call = await openCall((await victim.until("session")).session);
  const found = await findCommand(outputs, call.id, call.process);
  expect(found).toMatchObject({ kind: "ended", exitCode: 3, shown: text });
});

test("killed at any instant: what is found is what happened, and nothing runs that nobody knows of", async () => {
  const kinds = new Map<string, number>();
  for (let round = 0; round < 12; round++) {
    const lab = join(cwd, String(round));
    mkdirSync(lab);
    const command = `echo a >> ${lab}/effects; sleep 0.0${(seed + round) % 4}; echo b >> ${lab}/effects; echo said`;
    const victim = agent("nowhere", command);
    const { pid } = await victim.until("process");
    // The instant is spread over the life of the command, from before the gate to behind its end.
    const us = ((seed % 7919) * (round + 1) * 2971) % 40_000;
    await new Promise((resolve) => setTimeout(resolve, us / 1000));
    victim.kill();
    await victim.died;
    const { session } = await victim.until("session");
    const effects = (): string => (existsSync(`${lab}/effects`) ? readFileSync(`${lab}/effects`, "utf8") : "");
    await using store = await openStore(address(), { recordsToolStarts: true });
    const { interruption } = await store.read<AnthropicMessage>(session);
    const call = interruption?.calls[0];
    if (!call) {
      kinds.set("recorded", (kinds.get("recorded") ?? 0) + 1);
      expect(effects()).toBe("a\nb\n");
      continue;
    }
    if (!call.process) await until("its end", async () => (await membersOf(pid)).length === 0);
    const found = call.process
      ? await waitForCommand(outputs, call.id, call.process, { lookMs: 2 })
      : await findCommand(outputs, call.id, undefined);
    kinds.set(found.kind, (kinds.get(found.kind) ?? 0) + 1);
    expect(["ended", "not-begun"], `seed ${seed}, round ${round}`).toContain(found.kind);
    expect(effects()).toBe(found.kind === "ended" ? "a\nb\n" : "");
    if (found.kind === "ended") expect(found).toMatchObject({ exitCode: 0, shown: "said\n" });
    await until("its end", async () => (await membersOf(pid)).length === 0);
  }
  console.log(`found: ${JSON.stringify(Object.fromEntries(kinds))}`);
});
