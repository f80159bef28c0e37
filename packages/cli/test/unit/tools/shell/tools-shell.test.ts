import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import type { ToolProcess } from "holdfast";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import { safeName } from "../../../../src/tools/shell/output-files.ts";
import { membersOf } from "../../../../src/tools/shell/process-groups.ts";
import type { ShellContext } from "../../../../src/tools/shell/shell.ts";
import { runShell } from "../../../../src/tools/shell/shell.ts";
import {
  endProcesses,
  findCommand,
  identify,
  isRunning,
  stopGroup,
  waitForCommand,
} from "../../../../src/tools/shell/surviving-commands.ts";

let here: ReturnType<typeof place>;
let cwd: string;
let outputs: string;
beforeEach(() => {
  here = place();
  cwd = realpathSync(here.path);
  outputs = join(cwd, "state", "outputs");
});
afterEach(async () => {
  await endProcesses({ graceMs: 0 });
  here[Symbol.dispose]();
});

interface Seen {
  readonly recorded: ToolProcess[];
  said: string;
}

function watched(change: Partial<ShellContext> = {}): ShellContext & Seen {
  const recorded: ToolProcess[] = [];
  const context = {
    cwd,
    outputs,
    env: process.env,
    recorded,
    said: "",
    process: async (_call: string, process: ToolProcess) => void recorded.push(process),
    output: (_call: string, text: string) => {
      context.said += text;
    },
    ...change,
  };
  return context;
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries > 2000) throw new Error(`never came: ${what}`);
    await passed(5);
  }
}

const failure = (work: Promise<unknown>): Promise<string> =>
  work.then(
    (value) => `it did not fail: ${String(value)}`,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );

describe("what the model is answered", () => {
  test.each([
    ["echo one; echo two >&2", "one\ntwo\n"],
    ["printf x", "x"],
    ["true", "[no output]"],
    ["-x", /\[exit status 127\]$/u],
    ["exit 3", "[exit status 3; no output]"],
    ["echo no; false", "no\n[exit status 1]"],
    ["kill -TERM $$ 2>/dev/null; echo never", /\[exit status 143[^\]]*\]$/u],
    ['read line; echo "got [$line]"', "got []\n"],
    ['pwd | wc -l; echo "$TERM"', "1\ndumb\n"],
    ["true 2>/dev/null <&3 && echo open || echo closed", "closed\n"],
  ])("%s", async (command, answer) => {
    const said = await runShell(watched(), "c", { command });
    if (typeof answer === "string") expect(said.replaceAll(/^ +/gmu, "")).toBe(answer);
    else expect(said).toMatch(answer);
  });

  test("long output: the beginning, the end, and where the whole is", async () => {
    const context = watched();
    const said = await runShell(context, "c", { command: "seq 1 50000; printf '\\0€'" });
    expect(said.length).toBeLessThan(34_000);
    expect(said.startsWith("1\n2\n3\n")).toBe(true);
    expect(said.endsWith("50000\n\uFFFD€"), said.slice(-20)).toBe(true);
    const [, log] = /bytes left out here; the full output is in (.+)\]/u.exec(said)!;
    expect(readFileSync(log!, "utf8").split("\n")).toHaveLength(50_001);
    expect(statSync(log!).mode & 0o777).toBe(0o600);
    expect(statSync(outputs).mode & 0o777).toBe(0o700);
    expect(context.said.endsWith("50000\n\0€")).toBe(true);
  });

  test("a watcher that fails does not disturb the command", async () => {
    let told = 0;
    const context = watched({
      output: () => {
        told += 1;
        throw new Error("the screen is gone");
      },
    });
    const command = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two";
    const running = runShell(context, "c", { command });
    await until("its words", () => told === 1);
    writeFileSync(join(cwd, "go"), "");
    expect(await running).toBe("one\ntwo\n");
    expect(told, "it is not asked again").toBe(1);
  });

  test("what it prints is told while it runs", async () => {
    const context = watched();
    const running = runShell(context, "c", {
      command: "echo early; while [ ! -e go ]; do sleep 0.02; done; echo late",
    });
    await until("its words", () => context.said === "early\n");
    writeFileSync(join(cwd, "go"), "");
    expect(await running).toBe("early\nlate\n");
    expect(context.said).toBe("early\nlate\n");
  });
});

describe("R7b: the gate", () => {
  test("the process is recorded, with the identity of its start, before the command begins", async () => {
    const context: ShellContext & Seen = watched({
      process: async (_call, process) => {
        context.recorded.push(process);
        expect(await isRunning(process), "it waits at the gate").toBe(true);
        expect(existsSync(join(cwd, "effect"))).toBe(false);
      },
    });
    expect(await runShell(context, "c", { command: "echo x > effect; echo $PPID" })).toBe(
      `${context.recorded[0]!.pid}\n`,
    );
    expect(context.recorded).toMatchObject([{ group: true }]);
    expect(await isRunning(context.recorded[0]!)).toBe(false);
  });

  test("P8: a store that cannot record it: the command never begins, and its process is gone", async () => {
    let recorded: ToolProcess | null = null;
    const context = watched({
      process: async (_call, process) => {
        recorded = process;
        throw new Error("the disk is full");
      },
    });
    expect(await failure(runShell(context, "c", { command: "touch effect" }))).toBe("the disk is full");
    await until("its end", async () => !(await isRunning(recorded!)));
    expect(existsSync(join(cwd, "effect"))).toBe(false);
  });

  test("stopped while it waits at the gate, or before: it did not run, and says so", async () => {
    const stop = new AbortController();
    const context = watched({ process: async () => stop.abort() });
    expect(await failure(runShell(context, "c", { command: "touch effect" }, stop.signal))).toContain("did not run");
    expect(await failure(runShell(watched(), "d", { command: "touch effect" }, stop.signal))).toContain("did not run");
    const early = new AbortController();
    const starting = failure(runShell(watched(), "e", { command: "touch effect" }, early.signal));
    early.abort();
    expect(await starting, "while its shell is started").toContain("did not run");
    expect(existsSync(join(cwd, "effect"))).toBe(false);
  });

  test("what cannot begin says why", async () => {
    const lost = watched({ cwd: join(cwd, "gone") });
    expect(await failure(runShell(lost, "c", { command: "true" }))).toContain("no longer exists. It did not run.");
    expect(await failure(runShell(watched(), "c", { command: `true ${"x".repeat(3_000_000)}` }))).toContain(
      "did not run",
    );
    expect(readdirSync(outputs), "nothing is left of it").toEqual([]);
    writeFileSync(join(cwd, "file"), "");
    const closed = watched({ outputs: join(cwd, "file", "outputs") });
    expect(await failure(runShell(closed, "c", { command: "true" }))).toContain("It did not run.");
    expect(await failure(runShell(watched(), "c", { command: "a\0b" }))).toContain("NUL");
  });
});

describe("the end of a group", () => {
  const FAMILY = "(trap '' TERM; echo child; while :; do sleep 0.05; done) & echo parent; wait";

  test("an abort ends the whole group, and keeps what was printed", async () => {
    const stop = new AbortController();
    const context = watched();
    const running = failure(runShell(context, "c", { command: "sleep 300 & echo parent; wait" }, stop.signal));
    await until("its words", () => context.said.includes("parent"));
    stop.abort();
    expect(await running).toBe("The command was stopped. It printed:\nparent\n");
    expect(await membersOf(context.recorded[0]!.pid)).toEqual([]);
  });

  test("a timeout ends it", async () => {
    const context = watched();
    const said = await failure(runShell(context, "c", { command: "echo x; sleep 300", timeoutSeconds: 0.3 }));
    expect(said).toBe("The command took longer than 0.3 s and was stopped. It printed:\nx\n");
    expect(await membersOf(context.recorded[0]!.pid)).toEqual([]);
  });

  test("stopGroup kills what does not listen, and is content where there is nothing", async () => {
    const context = watched();
    const running = failure(runShell(context, "c", { command: FAMILY }));
    await until("both", () => /parent/u.test(context.said) && /child/u.test(context.said));
    const [process] = context.recorded;
    expect(await stopGroup(process!, { graceMs: 100 })).toBe(true);
    expect(await membersOf(process!.pid)).toEqual([]);
    expect(await running).toContain("killed by SIGTERM");
    expect(await stopGroup(process!)).toBe(false);
  });

  test("a process that only has the pid of the recorded one is never touched", async () => {
    const context = watched();
    const running = runShell(context, "c", { command: "while [ ! -e go ]; do sleep 0.02; done; echo whole" });
    await until("its process", () => context.recorded.length === 1);
    const { pid } = context.recorded[0]!;
    for (const started of ["", "another boot/1", `${(await identify(pid))!}0`]) {
      expect(await isRunning({ pid, started, group: true })).toBe(false);
      expect(await stopGroup({ pid, started, group: true })).toBe(false);
    }
    for (const wrong of [0, 1, -1, Number.NaN, 2 ** 40]) {
      expect(await stopGroup({ pid: wrong, started: (await identify(wrong)) ?? "", group: true })).toBe(false);
    }
    writeFileSync(join(cwd, "go"), "");
    expect(await running).toBe("whole\n");
  });

  test("what a command leaves in the background is told of, and ends with the agent", async () => {
    const context = watched();
    const said = await runShell(context, "c", { command: "sleep 300 & echo started" });
    expect(said).toBe("started\n[processes it started in the background keep running until the agent ends]");
    const { pid } = context.recorded[0]!;
    expect(await membersOf(pid)).toHaveLength(1);
    await endProcesses();
    expect(await membersOf(pid)).toEqual([]);
  });

  test("endProcesses ends all that runs, several at once", async () => {
    const contexts = [watched(), watched(), watched()];
    const running = contexts.map((one, at) => failure(runShell(one, `c${at}`, { command: "sleep 300" })));
    await until("all", () => contexts.every(({ recorded }) => recorded.length === 1));
    await endProcesses();
    for (const said of await Promise.all(running)) expect(said).toMatch(/SIGTERM|did not run/u);
  });
});

describe("R7b: a command is found again", () => {
  test("ended with its status and output, the same text that the call was answered with", async () => {
    for (const command of ["echo x; exit 7", "seq 1 20000", "true"]) {
      const context = watched();
      const answer = await runShell(context, "c", { command });
      const found = await findCommand(outputs, "c", context.recorded[0]!);
      expect(found).toMatchObject({ kind: "ended", running: false, shown: answer });
      expect(found.exitCode).toBe(command.endsWith("7") ? 7 : 0);
    }
  });

  test("running, waited for, and given up waiting for", async () => {
    const context = watched();
    const running = runShell(context, "c", { command: "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two" });
    await until("its words", () => context.said === "one\n");
    const [process] = context.recorded;
    expect(await findCommand(outputs, "c", process!)).toMatchObject({
      kind: "running",
      running: true,
      output: "one\n",
    });
    const stop = new AbortController();
    const given = failure(waitForCommand(outputs, "c", process!, { signal: stop.signal }));
    stop.abort(new Error("enough"));
    expect(await given).toBe("enough");
    const waiting = waitForCommand(outputs, "c", process!, { lookMs: 5 });
    writeFileSync(join(cwd, "go"), "");
    expect(await waiting).toMatchObject({ kind: "ended", exitCode: 0, shown: "one\ntwo\n" });
    await running;
  });

  test("killed without a status: unknown, with what it had printed; no process: it never began", async () => {
    const context = watched();
    const running = failure(runShell(context, "c", { command: "echo one; sleep 300" }));
    await until("its words", () => context.said === "one\n");
    process.kill(-context.recorded[0]!.pid, "SIGKILL");
    expect(await running).toContain("by SIGKILL");
    const found = await findCommand(outputs, "c", context.recorded[0]!);
    expect(found).toMatchObject({ kind: "unknown", running: false, output: "one\n" });
    expect(found.shown).toContain("outcome unknown");
    expect(await findCommand(outputs, "c", undefined)).toMatchObject({ kind: "not-begun" });
    expect(await findCommand(outputs, "other", { pid: 1, started: "x" })).toMatchObject({
      kind: "unknown",
      output: "",
    });
  });

  test("its shell alone was killed: what it had started may still run, and that is told", async () => {
    const context = watched();
    const running = failure(runShell(context, "c", { command: "echo one; sleep 300" }));
    await until("its words", () => context.said === "one\n");
    process.kill(context.recorded[0]!.pid, "SIGKILL");
    expect(await running).toContain("by SIGKILL. Processes of its group may still be running. It printed:");
    const found = await findCommand(outputs, "c", context.recorded[0]!);
    expect(found).toMatchObject({ kind: "unknown", running: false });
    expect(found.shown).toContain("Processes of its group may still be running.");
    await endProcesses();
    expect(await membersOf(context.recorded[0]!.pid)).toEqual([]);
    expect((await findCommand(outputs, "c", context.recorded[0]!)).shown).not.toContain("may still run");
  });

  test("R9: ids of calls may repeat and hold anything; each command keeps its own output", async () => {
    const ids = [
      "",
      ".",
      "..",
      "../../etc/passwd",
      "a/b",
      "A".repeat(500),
      "ü\n\0",
      "a-b",
      "a b",
      "a?b",
      "-rf",
      "c",
      "c",
    ];
    expect(new Set(ids.map(safeName)).size).toBe(new Set(ids).size);
    const found: string[] = [];
    for (const [at, id] of ids.entries()) {
      const context = watched();
      await runShell(context, id, { command: `echo ${at}` });
      found.push(id);
      expect((await findCommand(outputs, id, context.recorded[0]!)).output).toBe(`${at}\n`);
    }
    const names = readdirSync(outputs);
    expect(names).toHaveLength(2 * ids.length);
    for (const name of names) expect(name).toMatch(/^[\w~-]{1,100}\.\d+\.(?:log|exit)$/u);
  });

  test("R9: a command whose call has another id in the journal is found by its process", async () => {
    const context = watched();
    await runShell(watched(), "call_0", { command: "echo one" });
    const answer = await runShell(context, "call_0_2", { command: "echo two; exit 3" });
    const found = await findCommand(outputs, "call_0", context.recorded[0]!);
    expect(found).toMatchObject({ kind: "ended", exitCode: 3, shown: answer });
  });

  test("an exit file of an earlier process with the same pid says nothing about this one", async () => {
    mkdirSync(outputs, { recursive: true });
    const context: ShellContext & Seen = watched({
      process: async (_call, process) => {
        context.recorded.push(process);
        expect(existsSync(join(outputs, `c.${process.pid}.exit`))).toBe(false);
      },
    });
    // Whatever pid comes next, there is such a file.
    const next = existsSync("/proc/loadavg")
      ? Number(readFileSync("/proc/loadavg", "utf8").trim().split(" ").at(-1))
      : process.pid;
    for (let pid = next; pid < next + 3000; pid++) writeFileSync(join(outputs, `c.${pid}.exit`), "9\n");
    expect(await runShell(context, "c", { command: "echo x" })).toBe("x\n");
    expect(await findCommand(outputs, "c", context.recorded[0]!)).toMatchObject({ kind: "ended", exitCode: 0 });
  });
});
