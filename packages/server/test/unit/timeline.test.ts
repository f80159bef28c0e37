import type { JournalRecord } from "holdfast";
import { expect, test } from "vitest";
import { TimelineFold } from "../../src/reading/timeline.ts";
import { UsageFold } from "../../src/reading/usage.ts";

function read(message: unknown) {
  const {
    role,
    content,
    calls = [],
  } = message as { role: string; content?: unknown; calls?: { id: string; input: unknown }[] };
  return { role, text: String(content), calls };
}

function records(...given: readonly (readonly [kind: string, members?: object])[]): JournalRecord[] {
  return given.map(([kind, members], index) => ({
    ...{ seq: index + 1, at: new Date(Date.UTC(2026, 10, 16, 0, 0, index)).toISOString(), kind, crc: "0" },
    ...members,
  }));
}

function fold(isRunning: boolean, list: readonly JournalRecord[]) {
  const timeline = new TimelineFold(read);
  for (const record of list) timeline.add(record);
  timeline.finish(isRunning);
  return timeline.entries.map(({ kind, ...rest }) => {
    const { mark, outcome, from, to, at, name } = rest as unknown as Record<string, string | null>;
    const seconds = (time: string | null | undefined) => (time ? Number(time.slice(17, 19)) : time);
    return [kind, mark ?? outcome ?? name ?? "", seconds(from ?? at), seconds(to)].filter((one) => one !== undefined);
  });
}

const PROMPT = { id: "m1", turn: 1, message: { role: "user", content: "go" } };
const CALL = { turn: 1, call: "c1", message: "m2", name: "shell" };

test("a turn with a model call and a tool", () => {
  const list = records(
    ["segment"],
    ["session"],
    ["opened"],
    ["turn.started", { turn: 1, prompt: "m1" }],
    ["message", PROMPT],
    ["draft", { id: "m2", turn: 1, n: 0 }],
    ["message", { id: "m2", turn: 1, message: { role: "assistant" }, model: "x" }],
    ["tool.started", CALL],
    ["tool.ended", { ...CALL, value: 1 }],
    ["message", { id: "m3", turn: 1, message: { role: "assistant" } }],
    ["turn.ended", { turn: 1, outcome: "completed" }],
    ["closed"],
  );
  expect(fold(false, list)).toEqual([
    ["mark", "opened", 2],
    ["turn", "completed", 3, 10],
    ["model", "", 4, 6],
    ["tool", "done", 7, 8],
    ["model", "", 8, 9],
    ["mark", "closed", 11],
  ]);
});

test("a death, a resume, a wait and a replacement are marked; a tool without an end has an unknown outcome", () => {
  const list = records(
    ["opened"],
    ["turn.started", { turn: 1, prompt: "m1" }],
    ["message", PROMPT],
    ["tool.started", CALL],
    ["opened"],
    ["turn.resumed", { turn: 1, n: 1 }],
    ["repair", { turn: 1, entries: [] }],
    ["turn.suspended", { turn: 1, reason: "permission" }],
    ["turn.ended", { turn: 1, outcome: "aborted", by: "user" }],
    ["epoch", { reason: "compaction", carried: 0 }],
    ["message", { ...PROMPT, carried: true }],
  );
  expect(fold(true, list)).toEqual([
    ["turn", "aborted", 1, 8],
    ["tool", "unknown", 3, null],
    ["mark", "died", 3],
    ["mark", "opened", 4],
    ["mark", "resumed", 5],
    ["mark", "repaired", 6],
    ["wait", "", 7, 8],
    ["mark", "stopped", 8],
    ["mark", "replaced", 9],
  ]);
});

test("a turn of a process that died is interrupted; of one that lives, running", () => {
  const list = records(["opened"], ["turn.started", { turn: 1 }], ["message", PROMPT], ["tool.started", CALL]);
  expect(fold(false, list)).toEqual([
    ["turn", "interrupted", 1, null],
    ["tool", "unknown", 3, null],
    ["mark", "died", 3],
  ]);
  expect(fold(true, list)).toEqual([
    ["turn", "running", 1, null],
    ["tool", "running", 3, null],
  ]);
});

test("usage adds up by turn, model and day, whatever the journal holds", () => {
  const usage = new UsageFold();
  const list = records(
    ["message", { model: "a/x" }],
    ["usage", { turn: 1, usage: { inputTokens: 2, cost: { amount: 1, currency: "USD" } } }],
    ["usage", { turn: 1, usage: { inputTokens: 3, outputTokens: 1, cost: { amount: 2, currency: "EUR" } } }],
    ["usage", { turn: 2, usage: { inputTokens: "many", cost: null } }],
    ["usage", { turn: 2, usage: null }],
  );
  for (const record of list) usage.add(record);
  const first = {
    inputTokens: 5,
    outputTokens: 1,
    cost: { amount: 1, currency: "USD" },
    otherCosts: [{ amount: 2, currency: "EUR" }],
  };
  expect(usage.report()).toMatchObject({
    total: first,
    turns: [{ turn: 1, usage: first }, { turn: 2 }],
    models: [{ model: "a/x", usage: first }],
    days: [{ day: "2026-11-16", usage: first }],
  });
});

test("a process died at its own last record, not at the segment that the next one begins", () => {
  const list = records(
    ["opened"],
    ["turn.started", { turn: 1, prompt: "m1" }],
    ["message", PROMPT],
    ["segment"],
    ["opened"],
  );
  expect(fold(true, list)).toContainEqual(["mark", "died", 2]);
});

test("a model call says when its first word came, and a tool what it works on", () => {
  const call = { id: "c1", input: { path: "a.ts" } };
  const timeline = new TimelineFold(read);
  const list = records(
    ["opened"],
    ["turn.started", { turn: 1, prompt: "m1" }],
    ["message", PROMPT],
    ["draft", { id: "m2", turn: 1, n: 0 }],
    ["draft", { id: "m2", turn: 1, n: 1 }],
    ["message", { id: "m2", turn: 1, message: { role: "assistant", calls: [call] } }],
    ["tool.started", CALL],
  );
  for (const record of list) timeline.add(record);
  expect(timeline.entries.find(({ kind }) => kind === "model")).toMatchObject({
    from: list[2]!.at,
    first: list[3]!.at,
  });
  expect(timeline.entries.find(({ kind }) => kind === "tool")).toMatchObject({ about: "a.ts" });
});
