import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Account } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectedGist, gistOf, type Journal, writeJournals } from "../../../holdfast/test/journals/journals.ts";
import { lives } from "../../../holdfast/test/journals/lives.ts";
import { shortId } from "../../src/short-id.ts";
import { temporaryHome } from "../command.ts";

/** The killed sessions that every surface is held to, as the command shows them. */

const home = temporaryHome();
let own: readonly Journal[] = [];
let foreign: readonly Journal[] = [];
beforeAll(async () => {
  own = await writeJournals(home.store, "holdfast", home.work);
  foreign = await writeJournals(home.store, "other", home.work);
});
afterAll(() => home[Symbol.dispose]());

const names = lives().map(({ name }) => name);
const named = (journals: readonly Journal[], name: string): Journal => journals.find((one) => one.name === name)!;

test("ls shows the state of each", async () => {
  const { stdout } = await home.run(["ls", "--all", "--json"]);
  const listed = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const shown = new Map(listed.map(({ id, status, app }) => [id, { status, app }]));
  for (const [app, journals] of [
    ["holdfast", own],
    ["other", foreign],
  ] as const)
    for (const { id, name, expected } of journals) {
      const { state, queued = 0 } = expected;
      // The one status of `ls` that is not the account's.
      const status = state === "idle" && queued > 0 ? "queued" : state;
      expect(shown.get(id), name).toEqual({ status, app });
    }
});

/** What `show` says below the transcript. */
async function shown(id: string): Promise<{ readonly account: Account; readonly text: string }> {
  const [json, plain] = await Promise.all([home.run(["show", id, "--json"]), home.run(["show", id])]);
  expect([json.code, plain.code]).toEqual([0, 0]);
  const [about] = json.stdout.split("\n");
  return { account: (JSON.parse(about!) as { account: Account }).account, text: plain.stdout };
}

describe.each([
  ["this command's", "writer"],
  ["another program's", "another"],
] as const)("show, %s", (_, asking) => {
  test.each(names)("%s", async (name) => {
    const { id, expected } = named(asking === "writer" ? own : foreign, name);
    const { account, text } = await shown(id);
    expect(gistOf(account)).toEqual(expectedGist(expected, asking, { decides: false }));
    const isUnfinished = expected.state !== "idle";
    if (isUnfinished) expect(text).toContain(`Turn ${account.turn}: ${account.words.status}.`);
    for (const call of account.calls) expect(text).toContain(`: ${call.words}\n`);
    // The transcript says no more than the account knows.
    const hasStarted = account.calls.some(({ state }) => state === "outcome-unknown");
    expect(text.includes("started, outcome unknown")).toBe(hasStarted);
    const hint = `Finish it with: holdfast run --resume ${shortId(id)} --finish`;
    expect(text.includes(hint)).toBe(account.can.finish === true);
    expect(text.includes('It was written by "other"')).toBe(isUnfinished && asking === "another");
  });
});

/** The journal of a session, byte by byte. Opening it may keep a copy of what no sync has covered yet. */
function journalOf(id: string): Record<string, string> {
  const folder = join(home.store, "sessions", id);
  const journal = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return Object.fromEntries(journal.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

test.each(names)("%s: run --finish leaves another program's session alone", async (name) => {
  const { id } = named(foreign, name);
  const before = journalOf(id);
  const { code, stderr } = await home.run(["run", "--resume", id, "--finish"]);
  expect(code).toBe(2);
  expect(stderr).toContain("SESSION_FOREIGN");
  expect(stderr).toContain('"other"');
  expect(journalOf(id)).toEqual(before);
});

describe("what show offers works when it is typed", () => {
  test.each(["prompted", "b starts", "failed", "stopped by the user"])("%s", async (name) => {
    for (const [{ id }, flags] of [
      [named(own, name), []],
      [named(foreign, name), ["--take-over"]],
    ] as const) {
      const { code, stderr } = await home.run(["run", "--resume", id, "--finish", ...flags]);
      expect(code, stderr).toBe(0);
      expect((await shown(id)).account).toMatchObject({ state: "idle", calls: [] });
    }
  });
});
