import { accountOf, type FolderChanges, openStore } from "holdfast";
import { expect, test } from "vitest";
import { changesWords, modelChangesWords } from "../../../src/view/changes-words.ts";

const NONE: FolderChanges = { files: [], more: 0, gap: null };
const CHANGED: FolderChanges = {
  files: [
    {
      path: "a.txt",
      change: "changed",
      lines: { added: 1, removed: 1 },
      diff: [
        { kind: "same", text: "one" },
        { kind: "removed", text: "two" },
        { kind: "added", text: "key sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" },
      ],
    },
    { path: "b\n\u001b[31m/new", change: "new", lines: { added: 3, removed: 0 } },
    { path: "c", change: "removed" },
  ],
  more: 2,
  gap: null,
};

test("nothing has changed, these files have, or not everything was compared", () => {
  expect(changesWords(NONE)).toBe("nothing in the folder has changed since it began");
  expect(changesWords(CHANGED)).toBe(
    "changed in the folder since it began: a.txt (+1 -1), b /new (new), c (removed), 2 more files",
  );
  expect(changesWords({ ...NONE, gap: "git took too long" })).toBe(
    "no change in the folder was found since it began (git took too long)",
  );
  expect(changesWords({ ...CHANGED, files: CHANGED.files.slice(2), more: 0, gap: "a gap" })).toBe(
    "changed in the folder since it began: c (removed) (a gap)",
  );
});

test("the model also gets the differences, within limits", () => {
  expect(modelChangesWords(NONE)).toBe(
    "Nothing in the folder has changed since it began. What it may have done elsewhere is not known.",
  );
  expect(modelChangesWords(CHANGED)).toMatch(/^Changed in .*2 more files\.\na\.txt:\n {2}one\n- two\n\+ key sk-/);
  const many = {
    path: `p${"x".repeat(10_000)}`,
    change: "changed",
    diff: [{ kind: "added", text: "y".repeat(900) }],
  } as const;
  const words = modelChangesWords({
    files: Array.from({ length: 1_000 }, () => many),
    more: 0,
    gap: "z".repeat(10_000),
  });
  expect(words.length).toBeLessThan(20_000);
  expect(words).toContain("950 more files");
  expect(words).not.toContain("x".repeat(200));
});

test("P5: the account and the model say what has changed since a call began; credentials are hidden from the journal", async () => {
  await using store = await openStore("memory:", { recordsToolStarts: true, redact: "credentials" });
  const session = await store.create({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: "go" });
  const use = (id: string) => ({ type: "tool_use" as const, id, name: "edit", input: {} });
  await turn.append({ role: "assistant", content: [use("a"), use("b"), use("c")] });
  await turn.toolStarted("a", { before: { folder: "x" } });
  await turn.toolStarted("b");
  await turn.abort({ by: "user" });
  expect(session.interruption!.calls[0]!.before).toEqual({ folder: "x" });
  const policy = {
    runs: true,
    facts: { a: { changes: CHANGED }, b: { changes: NONE, report: "It printed: x" }, c: { changes: CHANGED } },
  };
  const { calls } = accountOf(session, { isOpenHere: true, policy });
  expect(calls.map(({ words }) => words)).toEqual([
    `started, outcome unknown; ${changesWords(CHANGED)}`,
    `started, outcome unknown; ${changesWords(NONE)}`,
    "never started, safe to run",
  ]);
  expect(calls.map(({ changes }) => changes)).toEqual([CHANGED, NONE, undefined]);
  const resumed = await session.resumeTurn({ calls: policy });
  expect(resumed.open.map(({ id }) => id)).toEqual(["c"]);
  const told = JSON.stringify(session.messages);
  expect(told).toContain("Check before repeating it. Changed in the folder since it began: a.txt (+1 -1)");
  expect(told).toContain("It printed: x\\nNothing in the folder has changed since it began.");
  expect(told).toContain("- two");
  expect(told).not.toContain("sk-ant-api03-A");
  // It was filled in, and says so.
  expect(session.entries.filter(({ synthetic }) => synthetic === "outcome-unknown")).toHaveLength(1);
});
