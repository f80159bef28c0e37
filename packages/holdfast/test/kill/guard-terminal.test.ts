import { setTimeout as sleep } from "node:timers/promises";
import { openFolderStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { needs } from "../machine/allowed.ts";
import { expectNothingLost, idOf, newJob, recordsOf, signalsOf } from "./guard-journal.ts";
import { agentCommand, Process } from "./guard-process.ts";
import { TERMINAL_PY, whyNot } from "./guard-terminal.ts";

/** SIGHUP that the test sends itself is in guard.test.ts, and runs everywhere. Here the kernel sends it. */
describe("C6: the terminal is closed", () => {
  test("the turn says SIGHUP, nothing is lost, and the parent sees SIGHUP", async (context) => {
    needs(context, "a closed terminal, seen by the parent", whyNot("python3", "-c", "import pty"));
    using made = newJob("plain");
    const [id] = made.job.ids as [string];
    await using terminal = new Process("python3", "-c", TERMINAL_PY, ...agentCommand(made.job));
    expect(await terminal.died, terminal.stderr).toEqual({ code: 0, signal: null });
    expect(JSON.parse(/^ended (.*)$/m.exec(terminal.stdout)![1]!)).toEqual({ code: null, signal: "SIGHUP" });
    const records = await recordsOf(made.job, id);
    expect(records.at(-1)).toMatchObject({ kind: "signal", signal: "SIGHUP" });
    expect(signalsOf(records)).toEqual([{ signal: "SIGHUP" }]);
    expectNothingLost(terminal.said, id, records);
  });

  test("the terminal itself is killed, as when a connection drops: the turn says SIGHUP", async (context) => {
    const noScript = process.platform === "linux" ? whyNot("script", "-qec", "true", "/dev/null") : "needs Linux";
    needs(context, "a killed terminal", noScript);
    using made = newJob("plain");
    const [id] = made.job.ids as [string];
    const quoted = agentCommand(made.job).map((word) => `'${word.replaceAll("'", "'\\''")}'`);
    await using terminal = new Process("script", "-qfec", `exec ${quoted.join(" ")}`, "/dev/null");
    await terminal.until("ready");
    terminal.kill("SIGKILL");
    await terminal.died;
    // Nobody is left who could see how the agent ended: that it is gone shows in its lease.
    await using store = await openFolderStore(made.job.folder);
    const session = await idOf(made.job, id);
    while (await store.holder(session)) await sleep(5);
    const records = await recordsOf(made.job, id);
    expect(signalsOf(records)).toEqual([{ signal: "SIGHUP" }]);
    expectNothingLost(terminal.said, id, records);
  });
});
