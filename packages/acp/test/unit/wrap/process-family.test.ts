import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { ProcessFamily, startOf } from "../../../src/wrap/process-family.ts";

interface Row {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  readonly command: string;
}

function table(): Row[] {
  const text = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,args="], { encoding: "utf8" });
  return text.split("\n").flatMap((line) => {
    const [, pid, parent, state, command] = /^(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/u.exec(line.trim()) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), state: state!, command }];
  });
}

/** The process for which this holds, as soon as there is one. */
async function found(isIt: (row: Row) => boolean): Promise<Row> {
  await expect.poll(() => table().some(isIt)).toBe(true);
  return table().find(isIt)!;
}

const isRunning = (pid: number): boolean => table().some((row) => row.pid === pid && !row.state.startsWith("Z"));
const pidsOf = async (family: ProcessFamily): Promise<number[]> => (await family.members())!.map(({ pid }) => pid);

/** As an agent is started: in a session of its own, with a mark. */
function start(
  command: string,
  args: readonly string[],
): { readonly child: ChildProcess; readonly family: ProcessFamily } {
  const mark = randomUUID();
  const env = { ...process.env, HOLDFAST_WRAPPED: mark };
  const child = spawn(command, args, { detached: true, stdio: "ignore", env });
  return { child, family: new ProcessFamily(child.pid!, `HOLDFAST_WRAPPED=${mark}`) };
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

/** A number of seconds that no other process sleeps for. */
let serial = 0;
const seconds = (): string => String(100_000 + (process.pid % 10_000) * 100 + serial++);

test("a zombie is no member, and has not to be ended: nothing runs any more", async () => {
  const time = seconds();
  // The child of the shell becomes one of a program that does not wait for it.
  const { child, family } = start("/bin/sh", ["-c", `sleep 0 & exec sleep ${time}`]);
  const zombie = await found(({ parent, state }) => parent === child.pid && state.startsWith("Z"));
  expect(await pidsOf(family)).toEqual([child.pid]);
  expect(await startOf(zombie.pid)).toBeNull();
  expect(await startOf(child.pid!)).not.toBeNull();
  await family.end(60_000);
  expect(isRunning(child.pid!)).toBe(false);
});

test("a process with an empty environment, in a group of its own, is a member after all others have ended", async () => {
  const time = seconds();
  const { child, family } = start("bash", ["-c", `set -m; env -i sleep ${time} & exec sleep ${time}`]);
  const left = await found(({ pid, command }) => pid !== child.pid && command === `sleep ${time}`);
  // Elsewhere, it must have been seen.
  if (process.platform !== "linux") await family.members();
  await killed(child);
  expect(await pidsOf(family)).toEqual([left.pid]);
  await family.end(60_000);
  expect(isRunning(left.pid)).toBe(false);
});

test("a process with an empty environment, in a session of its own, is remembered from when its parent ran", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const time = seconds();
    const program = `require("node:child_process").spawn("/bin/sleep", ["${time}"], { detached: true, env: {}, stdio: "ignore" });`;
    const { child, family } = start(process.execPath, ["-e", program]);
    family.watch();
    const left = await found(({ command }) => command === `/bin/sleep ${time}`);
    await vi.advanceTimersByTimeAsync(5_000);
    await killed(child);
    await expect.poll(() => pidsOf(family)).toEqual([left.pid]);
    await family.end(60_000);
    expect(isRunning(left.pid)).toBe(false);
  } finally {
    vi.useRealTimers();
  }
});

test("what does not heed SIGTERM is killed, and what it starts meanwhile too", async () => {
  const time = seconds();
  const program = `trap 'setsid sleep ${time} &' TERM; while :; do sleep ${time} & wait; done`;
  const { child, family } = start("/bin/sh", ["-c", program]);
  const isOne = ({ command }: Row): boolean => command === `sleep ${time}`;
  await found(isOne);
  await family.end(0);
  expect(isRunning(child.pid!)).toBe(false);
  expect(table().filter((row) => isOne(row) && !row.state.startsWith("Z"))).toEqual([]);
});

test("a session that another program began is not its own, also if one of its processes is in it", async () => {
  const time = seconds();
  const mark = randomUUID();
  const env = { ...process.env, HOLDFAST_WRAPPED: mark };
  // In the session of this test, as is the one that has nothing to do with it.
  const child = spawn("sleep", [time], { stdio: "ignore", env });
  const other = spawn("sleep", [time], { stdio: "ignore" });
  const family = new ProcessFamily(-1, `HOLDFAST_WRAPPED=${mark}`);
  try {
    // Only looked at: what is wrongly found here would be ended.
    for (let looks = 0; looks < 3; looks += 1)
      if (process.platform === "linux") await expect.poll(() => pidsOf(family)).toEqual([child.pid]);
      else expect(await pidsOf(family)).toEqual([]);
  } finally {
    await killed(child);
    await killed(other);
  }
});
