import type { FolderChanges, Json } from "holdfast";
import { expect, test } from "vitest";
import { type CallEvidence, NotedCalls } from "../../../src/record/noted-calls.ts";

const NEW: FolderChanges = { files: [{ path: "a", change: "new" }], more: 0, gap: null };

/** Notes nothing but what it was asked to. */
function evidence(fails = false) {
  const noted: { folder: string; named: readonly string[]; areOthersNeeded: boolean }[] = [];
  const recorded: Json[] = [];
  const given: CallEvidence = {
    note: async (folder, named, areOthersNeeded) => {
      await Promise.resolve();
      if (fails) throw new Error("no");
      noted.push({ folder, named, areOthersNeeded: areOthersNeeded() });
      return { folder: `note ${noted.length}` };
    },
    changes: async (_, { folder }) => (folder === "note 1" ? NEW : null),
  };
  const record = async (notes: Json): Promise<void> => void recorded.push(notes);
  return { noted, recorded, given, record };
}

const call = (toolCallId: string, more: object = {}) => ({ sessionUpdate: "tool_call", toolCallId, ...more });

test("a call that may change the folder is noted once, with the files that it names", async () => {
  const { noted, recorded, given, record } = evidence();
  const calls = new NotedCalls(given, undefined, record);
  calls.seen(
    call("a", {
      kind: "edit",
      locations: [{ path: "/w/x" }, null],
      rawInput: { file: "file:///w/y", text: "no path", n: 1 },
    }),
    "/w",
  );
  calls.seen(call("a", { kind: "edit" }), "/w");
  for (const kind of ["read", "search", "think", "fetch"]) calls.seen(call(kind, { kind }), "/w");
  await calls.settled("a");
  calls.seen(call("b"), "/w");
  await calls.settled("b");
  expect(noted).toEqual([
    { folder: "/w", named: ["/w/x", "/w/y"], areOthersNeeded: false },
    { folder: "/w", named: [], areOthersNeeded: true },
  ]);
  expect(recorded).toEqual([{ a: { folder: "note 1" } }, { a: { folder: "note 1" }, b: { folder: "note 2" } }]);
  expect([...(await calls.changes(["a", "b", "read", "unknown"], "/w"))]).toEqual([["a", NEW]]);
  calls.ended("a");
  expect((await calls.changes(["a"], "/w")).size).toBe(0);
});

test("what an earlier process recorded counts, until it is cleared; what is no note does not", async () => {
  const { given, record } = evidence();
  const calls = new NotedCalls(given, { a: { folder: "note 1" }, b: 5, c: { folder: 5 } }, record);
  expect((await calls.changes(["a", "b", "c"], "/w")).size).toBe(1);
  calls.clear();
  expect((await calls.changes(["a"], "/w")).size).toBe(0);
  expect((await new NotedCalls(given, "text", record).changes(["a"], "/w")).size).toBe(0);
});

test("a folder that cannot be looked at keeps nobody waiting, and nothing is recorded", async () => {
  const { recorded, given, record } = evidence(true);
  const calls = new NotedCalls(given, undefined, record);
  calls.seen(call("a"), "/w");
  await calls.settled("a");
  expect(recorded).toEqual([]);
  expect((await calls.changes(["a"], "/w")).size).toBe(0);
});

test("a call that has ended before it was noted is not recorded as open", async () => {
  const { recorded, given, record } = evidence();
  const calls = new NotedCalls(given, undefined, record);
  calls.seen(call("a"), "/w");
  calls.ended("a");
  await calls.settled("a");
  expect(recorded).toEqual([]);
});
