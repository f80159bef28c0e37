import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { validateAiSdk } from "@holdfast/testkit";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { eventually, reading, startRun } from "./run-lines.ts";

const log = (home: Home): string => {
  try {
    return readFileSync(join(home.work, "log.txt"), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
};

async function childrenOf(home: Home, parent: string) {
  await using store = await openStore(home.store);
  return (await store.list({ parent })).sessions;
}

test("a sub-agent has a session of its own, linked to the call; the parent's transcript stays small", async () => {
  using home = temporaryHome();
  mkdirSync(join(home.work, "docs"));
  for (let n = 0; n < 6; n++) writeFileSync(join(home.work, "docs", `${n}.md`), "word ".repeat(2000));
  const run = startRun(home, ["--allow", "write", "delegate: count words in docs"]);
  const { session } = await run.until("session");
  expect(await run.ended).toMatchObject({ code: 0 });
  const [child, ...others] = await childrenOf(home, session);
  expect(others).toEqual([]);
  const started = run.events.find((event) => event.type === "tool.started");
  expect(child?.parent).toEqual({ session, call: (started as { call: string }).call });
  const [own, below] = await Promise.all([reading(home, session), reading(home, child!.id)]);
  expect(JSON.stringify(own.messages).length * 10).toBeLessThan(JSON.stringify(below.messages).length);
  expect(JSON.stringify(own.messages)).not.toContain("word word");
  // What works for another session is not the one to go on with.
  const next = await home.run(["run", "--continue", "--json", "hello"]);
  expect(JSON.parse(next.stdout.split("\n")[0]!)).toMatchObject({ session });
  expect((await home.run(["ls", "--json"])).stdout.trim().split("\n")).toHaveLength(1);
});

test("killed in the middle of a sub-agent's work: it is taken up where it was left, not begun again", async () => {
  using home = temporaryHome();
  const prompt = "delegate: \n- run echo one >> log.txt && echo more\n- run sleep 0.3; echo two >> log.txt";
  const first = startRun(home, ["--allow", "shell", prompt]);
  const { session } = await first.until("session");
  await eventually(() => log(home).includes("one"));
  first.child.kill("SIGKILL");
  await first.ended;
  const before = await childrenOf(home, session);
  expect(before.length).toBeGreaterThan(0);
  const second = await home.run(["run", "--resume", session, "--finish", "--allow", "shell"]);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(log(home).split("\n").sort()).toEqual(["", "one", "two"]);
  const after = await childrenOf(home, session);
  expect(after).toHaveLength(2);
  expect(after.map(({ id }) => id)).toEqual(expect.arrayContaining(before.map(({ id }) => id)));
  expect(after.every(({ status }) => status === "idle")).toBe(true);
});

function pages(home: Home): void {
  mkdirSync(join(home.work, "docs"));
  for (let n = 0; n < 10; n++)
    writeFileSync(join(home.work, "docs", `${n}.md`), `${"word ".repeat(30 + n)}\n`.repeat(8));
}

const WINDOW = ["--allow", "write", "--window-tokens", "4000"];
const COUNT = "count words in docs to report.md";

test("C7, C38: near the end of the window the agent compacts by itself; killed in it, it is the old conversation or the new one, and the task completes", async () => {
  using undisturbed = temporaryHome();
  pages(undisturbed);
  const whole = startRun(undisturbed, [...WINDOW, COUNT]);
  expect(await whole.ended).toMatchObject({ code: 0 });
  expect(whole.events.some((event) => event.type === "replaced" && event.reason === "compaction")).toBe(true);
  const report = readFileSync(join(undisturbed.work, "report.md"), "utf8");
  for (const instant of ["compacting", "replaced"] as const) {
    using home = temporaryHome();
    pages(home);
    // Slow enough that the turn still runs when the signal arrives.
    const run = startRun(home, [...WINDOW, COUNT], { HOLDFAST_OFFLINE_DELAY_MS: "15" });
    const { session } = await run.until("session");
    await run.until(instant);
    run.child.kill("SIGKILL");
    await run.ended;
    const { messages, interruption } = await reading(home, session);
    expect(interruption?.prompt.message, instant).toEqual({ role: "user", content: COUNT });
    expect(validateAiSdk({ messages }), instant).toEqual([]);
    const summaries = messages.filter(({ content }) =>
      JSON.stringify(content).includes("[Summary of the conversation"),
    );
    expect(summaries.length, instant).toBeLessThanOrEqual(1);
    const finished = await home.run(["run", "--resume", session, "--finish", ...WINDOW]);
    expect(finished, finished.stderr).toMatchObject({ code: 0 });
    expect(readFileSync(join(home.work, "report.md"), "utf8"), instant).toBe(report);
  }
});
