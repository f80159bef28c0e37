import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type * as fs from "node:fs";
import type { Readable } from "node:stream";
import { expect, test, vi } from "vitest";
import { AgentProcess } from "../../../src/wrap/agent-process.ts";
import { ProcessFamily } from "../../../src/wrap/process-family.ts";

/** What a read of this path in `/proc` gives instead; null: what is there. */
let instead: (path: string) => string | Error | null = () => null;

vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  const reading =
    (read: (path: string, ...rest: unknown[]) => unknown) =>
    (path: string, ...rest: unknown[]): unknown => {
      const given = instead(path);
      if (given instanceof Error) throw given;
      return given ?? read(path, ...rest);
    };
  return {
    ...real,
    readFileSync: reading(real.readFileSync as never),
    readdirSync: reading(real.readdirSync as never),
  };
});

const noDescriptor = (): Error => Object.assign(new Error("too many open files"), { code: "EMFILE" });
const about = (pid: number, what: string): string =>
  spawnSync("ps", ["-o", `${what}=`, "-p", String(pid)], { encoding: "utf8" }).stdout.trim();
/** Not as a zombie. */
const isRunning = (pid: number): boolean => !/^(Z|$)/u.test(about(pid, "stat"));
const numberFrom = async (output: Readable): Promise<number> => Number(String((await once(output, "data"))[0]));

/** Runs a program as an agent is run, and watches it. */
function start(program: string) {
  const mark = randomUUID();
  const env = { ...process.env, HOLDFAST_WRAPPED: mark };
  const child = spawn("/bin/sh", ["-c", program], { detached: true, stdio: ["pipe", "pipe", "ignore"], env });
  const family = new ProcessFamily(child.pid!, `HOLDFAST_WRAPPED=${mark}`);
  family.watch();
  const kill = async (): Promise<void> => {
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  return { family, input: child.stdin, output: child.stdout, kill };
}

const linux = process.platform === "linux";

test.runIf(linux)("a moment without descriptors: what was seen is remembered, and all of it is ended", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const { family, output, kill } = start("env -i setsid sleep 100000 & echo $!; wait");
    const left = await numberFrom(output);
    await vi.advanceTimersByTimeAsync(1_000);
    instead = (path) => (path.startsWith("/proc") ? noDescriptor() : null);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await family.members()).toBeNull();
    await kill();
    const ended = family.end(60_000);
    instead = () => null;
    await ended;
    expect(isRunning(left)).toBe(false);
  } finally {
    instead = () => null;
    vi.useRealTimers();
  }
});

test.runIf(linux)("an agent that ends while no descriptor is free has ended", async () => {
  const agent = await AgentProcess.start(["/bin/sh", "-c", "read line"]);
  agent.stdout.resume();
  instead = (path) => (path.startsWith("/proc") ? noDescriptor() : null);
  try {
    expect(await agent.end(0)).toMatchObject({ code: 1 });
  } finally {
    instead = () => null;
  }
});

test.runIf(linux)(
  "a process whose environment is empty for a moment, as while it becomes another program, is ended",
  async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const { family, output, kill } = start("setsid sleep 100000 & echo $!; wait");
      const left = await numberFrom(output);
      // Until then it is found in the session of its parent.
      await expect.poll(() => about(left, "args")).toBe("sleep 100000");
      await kill();
      let looks = 0;
      instead = (path) => (path === `/proc/${left}/environ` && looks++ === 0 ? "" : null);
      await family.end(60_000);
      expect(looks).toBeGreaterThan(0);
      expect(isRunning(left)).toBe(false);
    } finally {
      instead = () => null;
      vi.useRealTimers();
    }
  },
);

test.runIf(linux)(
  "what a process in a session of its own has started just before it ended is found there",
  async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const program = "env -i setsid sh -c 'echo $$; read line; sleep 100000 & echo $!' ; read line";
      const { family, input, output, kill } = start(program);
      const leader = await numberFrom(output);
      await vi.advanceTimersByTimeAsync(1_000);
      input.write("\n");
      const left = await numberFrom(output);
      await expect.poll(() => isRunning(leader)).toBe(false);
      await vi.advanceTimersByTimeAsync(1_000);
      await kill();
      await family.end(60_000);
      expect(isRunning(left)).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  },
);
