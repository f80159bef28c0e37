import { HoldfastError, type JournalRecord } from "holdfast";
import { expect, test } from "vitest";
import type { Item } from "../../../src/contract/item.ts";
import type { ServedHost } from "../../../src/contract/served-host.ts";
import { callSubject } from "../../../src/reading/call-subject.ts";
import { atResolution } from "../../../src/reading/resolution.ts";
import {
  changesIn,
  describeSession,
  itemsIn,
  nullIfUnreadable,
  stateShown,
  treeOf,
} from "../../../src/reading/sessions.ts";
import { shorten } from "../../../src/reading/shorten.ts";
import { TimelineFold, type TimelineItem } from "../../../src/reading/timeline.ts";
import { addUsage, UsageFold } from "../../../src/reading/usage.ts";

const START = Date.UTC(2026, 0, 1);
const time = (second: number): string => new Date(START + second * 1000).toISOString();
const ALL = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

/** A message says what the test puts in it. */
const said = (message: unknown) => ({ role: "user", text: "", calls: [], answers: [], ...(message as object) });

type ShortRecord = readonly [kind: string, members?: object];

/** Records a second apart, the first at second 0. */
function folded(...given: readonly ShortRecord[]): TimelineFold {
  const timeline = new TimelineFold(said);
  for (const [index, [kind, members]] of given.entries())
    timeline.add({ seq: index + 1, at: time(index), kind, crc: "0", ...members } as JournalRecord);
  return timeline;
}

/** Each happening as one line: what, from when, until when. */
function lines(timeline: TimelineFold, isRunning = true): string[] {
  const seconds = (ms: number | null | undefined): string => (ms == null ? "-" : String((ms - START) / 1000));
  return timeline.happenings(isRunning).map((one) => {
    if (one.kind === "mark") return `${seconds(one.startMs)} mark ${one.mark} turn ${one.turn}: ${one.words}`;
    const outcome = "outcome" in one ? ` ${one.outcome}` : "";
    return `${seconds(one.startMs)}-${seconds(one.endMs)} ${one.kind}${outcome} turn ${one.turn} over ${seconds(one.overMs)}`;
  });
}

const TURN = ["turn.started", { turn: 1 }] as const;
const PROMPT = ["message", { turn: 1, message: { role: "user", text: "go" } }] as const;
const ended = (outcome: string, own: object = {}) => ["turn.ended", { turn: 1, outcome, ...own }] as const;
const asking = (...ids: string[]) =>
  [
    "message",
    {
      id: "m",
      turn: 1,
      model: "x",
      message: { role: "assistant", calls: ids.map((id) => ({ id, name: id, input: {} })) },
    },
  ] as const;
const started = (call: string, own: object = {}) =>
  ["tool.started", { turn: 1, message: "m", call, name: call, ...own }] as const;
const done = (call: string, own: object = {}) => ["tool.ended", { turn: 1, message: "m", call, ...own }] as const;

test("a turn ends as its record says: by whom, and why", () => {
  const turnOf = (...records: readonly ShortRecord[]) => folded(TURN, PROMPT, ...records).happenings(true)[0];
  expect(turnOf(ended("completed"))).toEqual({
    ...{ kind: "turn", turn: 1, startMs: START, endMs: START + 2000, overMs: null, seq: 1 },
    ...{ prompt: "go", outcome: "completed" },
  });
  for (const outcome of ["aborted", "failed", "left"]) expect(turnOf(ended(outcome))).toMatchObject({ outcome });
  expect(turnOf(ended("nonsense"))).toMatchObject({ outcome: "completed" });
  expect(turnOf(ended("aborted", { by: "user", error: "no credit" }))).toMatchObject({
    by: "user",
    error: "no credit",
  });
  expect(turnOf(["turn.ended", { turn: 2, outcome: "failed" }])).toMatchObject({ outcome: "running", endMs: null });
  expect(turnOf(PROMPT, ["message", { message: { role: "tool", text: "late" } }])).toMatchObject({ prompt: "go" });
  expect(folded(TURN, ["message", { message: { role: "tool", text: "t" } }], PROMPT).happenings(true)[0]).toMatchObject(
    {
      prompt: "go",
    },
  );
});

test("who stopped a turn is marked, in words", () => {
  expect(lines(folded(TURN, ended("aborted", { by: "user" })))[1]).toBe("1 mark stopped turn 1: stopped by user");
  expect(lines(folded(TURN, ended("aborted")))[1]).toBe("1 mark stopped turn 1: stopped by the application");
  expect(lines(folded(TURN, ended("failed")))).toHaveLength(1);
});

test("a turn that the next one takes the place of was interrupted, and its wait and its answer are over", () => {
  const next = ["turn.started", { turn: 2 }] as const;
  expect(lines(folded(TURN, ["draft", { turn: 1 }], next))).toEqual([
    "0-2 turn interrupted turn 1 over -",
    "0-2 model turn 1 over -",
    "2-- turn running turn 2 over -",
  ]);
  expect(lines(folded(TURN, ["turn.suspended", { turn: 1, reason: "key" }], next))).toEqual([
    "0-2 turn waiting turn 1 over -",
    "1-2 wait turn 1 over -",
    "2-- turn running turn 2 over -",
  ]);
  expect(lines(folded(TURN, ended("completed"), next))[0]).toBe("0-1 turn completed turn 1 over -");
  expect(folded(TURN, ended("completed"), next)).toMatchObject({ turns: 2, size: 2, lanes: 1 });
});

test("a wait lasts until the turn is resumed or ends; the model is asked from the resumption on", () => {
  const suspended = ["turn.suspended", { turn: 1, reason: "key" }] as const;
  const resumed = ["turn.resumed", { turn: 1 }] as const;
  expect(lines(folded(TURN, PROMPT, ["draft", { turn: 1 }], suspended, resumed, ["draft", { turn: 1 }]))).toEqual([
    "0-- turn running turn 1 over -",
    "1-3 model turn 1 over -",
    "3-4 wait turn 1 over -",
    "4 mark resumed turn 1: turn 1 was resumed",
    "4-- model turn 1 over -",
  ]);
  expect(folded(suspended).happenings(true)).toMatchObject([{ kind: "wait", reason: "key", seq: 1 }]);
  expect(lines(folded(TURN, suspended, ended("left")))).toContain("1-2 wait turn 1 over -");
  expect(lines(folded(resumed))).toEqual(["0 mark resumed turn null: turn 1 was resumed"]);
});

test("a model call begins where the model could be asked, and ends with its message or without one", () => {
  const models = (...records: readonly ShortRecord[]) =>
    folded(...records)
      .happenings(true)
      .filter((one) => one.kind === "model");
  expect(models(TURN, PROMPT, ["draft", { turn: 1 }], ["draft", { turn: 1 }], asking())).toEqual([
    {
      ...{ kind: "model", turn: 1, startMs: START + 1000, endMs: START + 4000, overMs: null, seq: 2 },
      ...{ firstMs: START + 2000, message: "m", model: "x" },
    },
  ]);
  const [whole] = models(TURN, PROMPT, ["message", { id: "m", turn: 1, message: { role: "assistant" } }]);
  expect(whole).toMatchObject({ startMs: START + 1000, endMs: START + 2000 });
  expect([whole && "firstMs" in whole, whole && "model" in whole]).toEqual([false, false]);
  // Without a turn, and so without anything that says when the model was asked.
  expect(models(["draft", {}])).toMatchObject([{ startMs: START, seq: 1, message: null }]);
  // A stream that broke, and was begun again.
  expect(models(TURN, ["draft", { turn: 1 }], ["draft", { discarded: "retry" }], ["draft", { turn: 1 }])).toMatchObject(
    [{ endMs: START + 2000, message: null }, { endMs: null }],
  );
  expect(models(TURN, ["draft", { turn: 1 }], ended("aborted"))).toMatchObject([
    { endMs: START + 2000, message: null },
  ]);
  // After a tool, from its end on; a carried message is none.
  expect(models(TURN, asking("a"), started("a"), done("a"), asking())[1]).toMatchObject({
    startMs: START + 3000,
    seq: 4,
  });
  expect(models(["message", { carried: true, message: { role: "assistant" } }])).toEqual([]);
});

test("a tool ends with its record or with a result; tools of one time are counted", () => {
  const timeline = folded(
    ...[TURN, asking("a", "b", "c"), started("a"), started("b", { child: "s", input: { path: "p" } }), started("c")],
    ...[done("a"), done("b", { error: "x" }), done("unknown")],
    ["message", { message: { role: "tool", answers: [{ call: "c", failed: true }] } }],
  );
  expect(lines(timeline).filter((line) => line.includes("tool"))).toEqual([
    "2-5 tool done turn 1 over -",
    "3-6 tool failed turn 1 over -",
    "4-8 tool failed turn 1 over -",
  ]);
  expect(timeline.lanes).toBe(3);
  const tools = timeline.happenings(true).filter((one) => one.kind === "tool");
  expect(tools[1]).toMatchObject({ call: "b", name: "b", child: "s", about: "p", seq: 4 });
  expect([tools[0] && "child" in tools[0], tools[0] && "about" in tools[0]]).toEqual([false, false]);
  const answer = ["message", { message: { role: "tool", answers: [{ call: "a", failed: false }] } }] as const;
  expect(lines(folded(started("a"), started("b"), answer))).toEqual([
    "0-2 tool done turn 1 over -",
    "1-- tool running turn 1 over -",
  ]);
});

test("a process that died took its tools, its answer and its turn with it, at its last sign", () => {
  const records = [
    ["opened", { intents: true }],
    TURN,
    asking("a", "b"),
    started("a"),
    ["draft", { turn: 1 }],
  ] as const;
  const dead = [
    "1-- turn interrupted turn 1 over -",
    "1-2 model turn 1 over -",
    "3-- tool unknown turn 1 over 4",
    "1-4 model turn 1 over -",
    "4 mark died turn 1: the process died",
    "2-4 tool not-run turn 1 over -",
    "4 mark not-run turn 1: a tool call had not started: b",
  ];
  expect(lines(folded(...records), false)).toEqual(dead);
  const next = [["segment"], ["opened", {}]] as const;
  expect(lines(folded(...records, ...next), true)).toEqual([...dead, "6 mark opened turn 1: opened by a process"]);
  // A session that was closed had no process that could die.
  expect(lines(folded(["opened"], ["closed"], ["opened"]), true)).toEqual([
    "1 mark closed turn null: closed",
    "2 mark opened turn null: opened by a process",
  ]);
  expect(lines(folded(["opened"], ["closed"]), false)).toEqual(["1 mark closed turn null: closed"]);
  expect(lines(folded(["opened"], TURN), true)).toEqual(["1-- turn running turn 1 over -"]);
  // Two deaths are two.
  expect(lines(folded(["opened"], TURN, ["opened"], ["opened"]), true).filter((line) => line.includes("died"))).toEqual(
    [...["1 mark died turn 1: the process died", "2 mark died turn 1: the process died"]],
  );
});

test("a call that was not started when the session was closed is told; one that waits for a person is not", () => {
  const records = [["opened", { intents: true }], TURN, asking("a", "b", "c", "d", "e", "f")] as const;
  expect(lines(folded(...records, ["closed"])).slice(-2)).toEqual([
    "3 mark not-run turn 1: 6 tool calls had not started: a, b, c, d and 2 more",
    "3 mark closed turn 1: closed",
  ]);
  expect(folded(...records, ["closed"]).lanes).toBe(6);
  expect(folded(...records, started("a"), started("b"), ["closed"]).lanes).toBe(6);
  expect(lines(folded(...records, ended("completed"), ["closed"])).some((line) => line.includes("not-run"))).toBe(
    false,
  );
  const waiting = [...records, ["turn.suspended", { turn: 1, reason: "key" }], ["closed"]] as const;
  expect(lines(folded(...waiting)).some((line) => line.includes("not-run"))).toBe(false);
  // A tool that started before its call was recorded did start.
  const early = [["opened", { intents: true }], TURN, started("a"), asking("a"), ended("aborted")] as const;
  expect(lines(folded(...early)).some((line) => line.includes("not-run"))).toBe(false);
  // Calls of an earlier turn are not told twice.
  const later = [...records, ["turn.started", { turn: 2 }], ["turn.ended", { turn: 2, outcome: "failed" }]] as const;
  expect(lines(folded(...later)).some((line) => line.includes("not-run"))).toBe(false);
});

test("signals, repairs and replacements are marked in words", () => {
  const reasons = ["compaction", "clear", "rewind", "other", "fork"].map((reason) => ["epoch", { reason }] as const);
  expect(lines(folded(["signal", { signal: "SIGTERM" }], ["repair"], ...reasons))).toEqual([
    "0 mark signal turn null: the process was told to end (SIGTERM)",
    "1 mark repaired turn null: what was interrupted was closed, and the model told",
    "2 mark replaced turn null: the conversation was summarized",
    "3 mark replaced turn null: the conversation was cleared",
    "4 mark replaced turn null: the conversation was rewound",
    "5 mark replaced turn null: the conversation was replaced",
  ]);
});

test("only the process that opens the session first is not marked", () => {
  expect(lines(folded(["session"], ["opened"], ["closed"], ["opened"]))).toEqual([
    "2 mark closed turn null: closed",
    "3 mark opened turn null: opened by a process",
  ]);
  expect(lines(folded(["segment"], ["session"], ["opened"]))).toHaveLength(1);
});

test("a message is read in the dialect of the session, or of the process that opened it last", () => {
  const dialects: string[] = [];
  const timeline = new TimelineFold((message, dialect) => {
    dialects.push(dialect);
    return said(message);
  });
  const message = { kind: "message", message: {} };
  const given = [
    { kind: "session", dialect: "a" },
    message,
    { kind: "opened" },
    message,
    { kind: "opened", dialect: "b" },
  ];
  for (const [seq, record] of [...given, message].entries())
    timeline.add({ seq: seq + 1, at: time(seq), crc: "0", ...record } as JournalRecord);
  expect(dialects).toEqual(["a", "a", "b"]);
});

test("a record whose time cannot be read stands where the last one does; strange members count as none", () => {
  const timeline = folded(TURN, ["signal", { at: "nonsense", signal: 7 }], ["turn.resumed", { turn: "many" }]);
  expect(lines(timeline).slice(1)).toEqual([
    "0 mark signal turn 1: the process was told to end ()",
    "2 mark resumed turn 1: turn 0 was resumed",
  ]);
  expect(folded(["signal", { at: "nonsense" }]).first).toMatchObject({ ms: 0, seq: 1 });
  expect(timeline.first).toEqual({ seq: 1, ms: START, cursor: "1-0" });
  expect(timeline.last).toMatchObject({ seq: 3, ms: START + 2000 });
  const far = new TimelineFold(said);
  far.add({ seq: 1, at: time(0), kind: "other" } as unknown as JournalRecord, "given");
  expect(far.last?.cursor).toBe("given");
  const long = folded(["turn.started", { turn: 1 }], ["message", { message: { text: "x".repeat(999) } }]);
  expect(long.happenings(true)[0]).toMatchObject({ prompt: "x".repeat(200) });
});

const tool = (from: number, to: number | null, outcome = "done"): TimelineItem =>
  ({
    ...{ kind: "tool", turn: 1, seq: from, call: `${from}`, name: "x", outcome },
    ...{ startMs: START + from, endMs: to === null ? null : START + to, overMs: null },
  }) as TimelineItem;
const mark = (at: number, kind = "died"): TimelineItem =>
  ({ kind: "mark", mark: kind, startMs: START + at, seq: at, turn: null, words: "" }) as TimelineItem;
const shown = (happenings: readonly TimelineItem[], buckets: number, window: object = ALL) =>
  atResolution(happenings, { ...ALL, ...window, buckets });
const ms = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso) - START);
const spans = (happenings: readonly TimelineItem[], buckets: number, window: object = ALL) =>
  shown(happenings, buckets, window).entries.map((one) =>
    one.kind === "mark" ? [ms(one.at), one.count ?? 1] : [ms(one.from), ms(one.to), one.count ?? 1],
  );

test("as many as can be told apart are shown as they are, in the order of their starts", () => {
  const three = [tool(50, 60), mark(20), tool(0, 10)];
  expect(shown(three, 3).isMerged).toBe(false);
  expect(spans(three, 3)).toEqual([
    [0, 10, 1],
    [20, 1],
    [50, 60, 1],
  ]);
  expect(shown(three, 3).entries.every((one) => !("count" in one))).toBe(true);
  expect(shown([...three, mark(21)], 3).isMerged).toBe(true);
});

test("neighbours shorter than a bucket of busy time are merged, and idle time does not count", () => {
  // Busy for 40 ms in all: two buckets of 20.
  const tools = [tool(0, 10), tool(10, 20), tool(20, 30), tool(90_000, 90_010)];
  expect(spans(tools, 2)).toEqual([
    [0, 20, 2],
    [20, 30, 1],
    [90_000, 90_010, 1],
  ]);
  // What overlaps counts once: busy for 30 ms.
  expect(spans([tool(0, 20), tool(10, 30), tool(30, 30)], 2)).toEqual([
    [0, 20, 1],
    [10, 30, 1],
    [30, 30, 1],
  ]);
  // The window ends the work that reaches beyond it.
  expect(spans([tool(0, 1000), tool(5, 6), tool(7, 8)], 2, { fromMs: START, toMs: START + 10 })).toEqual([
    [0, 1000, 1],
    [5, 8, 2],
  ]);
});

test("what is at the edge of a window is in it, what is beyond is not", () => {
  const tools = [tool(0, 10), tool(10, 20), tool(20, 30), tool(30, 40), mark(9), mark(10), mark(30), mark(31)];
  expect(spans(tools, 99, { fromMs: START + 10, toMs: START + 30 })).toEqual([
    [0, 10, 1],
    [10, 20, 1],
    [10, 1],
    [20, 30, 1],
    [30, 40, 1],
    [30, 1],
  ]);
  expect(
    spans([tool(0, null), { ...tool(0, null), overMs: START + 5 } as TimelineItem], 9, { fromMs: START + 9 }),
  ).toEqual([[0, null, 1]]);
});

test("of those that are merged the gravest names all, marks stay with their kind, and open ends stay open", () => {
  const outcomes = ["done", "running", "not-run", "failed", "unknown"];
  for (const [index, gravest] of outcomes.entries())
    for (const order of [outcomes.slice(0, index + 1), outcomes.slice(0, index + 1).reverse()])
      expect(
        shown(
          order.map((outcome, at) => tool(at, at, outcome)),
          0,
        ).entries[0],
      ).toMatchObject({ outcome: gravest });
  const { entries } = shown([mark(0), mark(0, "stopped"), mark(0), tool(0, null), tool(0, null), tool(0, 0)], 1);
  expect(entries.map((one) => [one.kind, one.count ?? 1])).toEqual([
    ["mark", 2],
    ["mark", 1],
    ["tool", 2],
    ["tool", 1],
  ]);
  expect(entries[2]).toMatchObject({ to: null });
  expect(entries[3]).toMatchObject({ from: time(0), to: time(0) });
});

test("a merged model call says nothing of a first word, and no entry says what is not sent", () => {
  const model = (from: number): TimelineItem =>
    ({
      ...{ kind: "model", turn: 1, seq: 1, message: "m", firstMs: START + from + 1 },
      ...{ startMs: START + from, endMs: START + from + 2, overMs: null },
    }) as TimelineItem;
  expect(shown([model(0)], 9).entries).toEqual([
    {
      ...{ kind: "model", turn: 1, seq: 1, message: "m", from: time(0), to: time(0.002), first: time(0.001) },
    },
  ]);
  expect(shown([model(0), model(0)], 1).entries).toEqual([
    { kind: "model", turn: 1, seq: 1, message: "m", from: time(0), to: time(0.002), count: 2 },
  ]);
  expect(shown([mark(0)], 9).entries).toEqual([
    { kind: "mark", mark: "died", at: time(0), seq: 0, turn: null, words: "" },
  ]);
});

test("usage adds up per turn, model and day; costs add up per currency; what is no number is none", () => {
  const usage = new UsageFold();
  const add = (kind: string, at: string, members: object) =>
    usage.add({ seq: 1, at, kind, crc: "0", ...members } as JournalRecord);
  add("usage", "2026-01-01T10:00:00Z", { usage: { inputTokens: 1 } });
  add("message", "2026-01-01T10:00:00Z", { model: "a" });
  add("usage", "2026-01-01T11:00:00Z", { turn: 1, usage: { inputTokens: 2, reasoningTokens: 1 } });
  add("message", "2026-01-02T10:00:00Z", { model: 7 });
  add("usage", "2026-01-02T10:00:00Z", { turn: 1, usage: { cacheReadTokens: 4, cacheWriteTokens: 5 } });
  add("other", "2026-01-02T10:00:00Z", { turn: 1, usage: { inputTokens: 99 }, model: "b" });
  add("usage", "2026-01-02T10:00:00Z", { turn: 1, usage: "many" });
  expect(usage.report()).toEqual({
    total: { inputTokens: 3, reasoningTokens: 1, cacheReadTokens: 4, cacheWriteTokens: 5 },
    turns: [
      { turn: 0, at: "2026-01-01T10:00:00Z", usage: { inputTokens: 1 } },
      {
        ...{ turn: 1, at: "2026-01-01T11:00:00Z" },
        usage: { inputTokens: 2, reasoningTokens: 1, cacheReadTokens: 4, cacheWriteTokens: 5 },
      },
    ],
    models: [
      { model: "", usage: { inputTokens: 1 } },
      { model: "a", usage: { inputTokens: 2, reasoningTokens: 1, cacheReadTokens: 4, cacheWriteTokens: 5 } },
    ],
    days: [
      { day: "2026-01-01", usage: { inputTokens: 3, reasoningTokens: 1 } },
      { day: "2026-01-02", usage: { cacheReadTokens: 4, cacheWriteTokens: 5 } },
    ],
  });
  const paid = (amount: unknown, currency: unknown, ...otherCosts: object[]) =>
    ({ cost: { amount, currency }, ...(otherCosts.length > 0 ? { otherCosts } : {}) }) as never;
  expect(
    addUsage(paid(1, "USD", { amount: 2, currency: "EUR" }), paid(3, "EUR", { amount: 4, currency: "USD" })),
  ).toEqual({
    cost: { amount: 5, currency: "USD" },
    otherCosts: [{ amount: 5, currency: "EUR" }],
  });
  expect(addUsage(paid("1", "USD"), paid(1, 7))).toEqual({});
  expect(addUsage({ inputTokens: Number.NaN, outputTokens: 0 }, { outputTokens: Number.POSITIVE_INFINITY })).toEqual({
    outputTokens: 0,
  });
});

test("a text is cut between two characters", () => {
  expect([shorten("abc", 3), shorten("abcd", 3), shorten("ab😀", 3), shorten("a😀b", 3)]).toEqual([
    ...["abc", "abc", "ab", "a😀"],
  ]);
  expect([shorten("\ud83d", 9), shorten("ab\udbffx", 3), shorten("ab\ud800x", 3), shorten("ab\ue000x", 3)]).toEqual([
    ...["\ufffd", "ab", "ab", "ab\ue000"],
  ]);
});

test("what a call works on, by the name that says most", () => {
  const names = ["path", "file_path", "filePath", "file", "filename", "target_file", "command", "cmd", "pattern"];
  for (const name of [...names, "query", "url", "task", "prompt", "description"])
    expect(callSubject({ other: "x", [name]: " a \n b " })).toBe("a b");
  expect(callSubject({ description: "d", command: ["ls", 7, "-l"] })).toBe("ls -l");
  expect(callSubject({ path: " ", command: "ls" })).toBe("ls");
  expect(callSubject({ path: "x".repeat(999) })).toBe("x".repeat(120));
  expect([callSubject("text"), callSubject(null), callSubject(undefined), callSubject({ path: 7 })]).toEqual([
    ...["", "", "", ""],
  ]);
});

test("a session that cannot be read is none; any other failure is one", async () => {
  expect(await nullIfUnreadable(Promise.resolve(7))).toBe(7);
  const unreadable = new HoldfastError("SESSION_NOT_FOUND", "gone");
  expect(await nullIfUnreadable(Promise.reject(unreadable))).toBeNull();
  await expect(nullIfUnreadable(Promise.reject(new TypeError("bug")))).rejects.toThrow("bug");
});

test("the files that calls change, each with its changes in order", () => {
  const call = (id: string, path: string): Item => ({
    ...{ kind: "call", id, at: time(0), turn: 1, call: `c${id}`, name: "write", input: path, state: "done" },
  });
  const rows = [{ kind: "added", text: "x" }];
  const host = { changeOf: ({ input }: { input: string }) => (input === "" ? null : { path: input, rows }) };
  const note = { ...call("9", "z"), kind: "note" } as unknown as Item;
  const items = [call("1", "a"), call("2", "b"), note, call("3", ""), call("4", "a")];
  const change = (id: string) => ({ item: id, call: `c${id}`, at: time(0), turn: 1, state: "done", rows });
  expect(changesIn(host as unknown as ServedHost, items)).toEqual({
    files: [
      { path: "a", changes: [change("1"), change("4")] },
      { path: "b", changes: [change("2")] },
    ],
  });
});

/** A host whose sessions have these children, two on a page. */
function family(children: Readonly<Record<string, readonly string[]>>) {
  const asked: string[] = [];
  const list = async ({ parent, after, empty }: { parent: string; after?: string; empty: boolean }) => {
    asked.push(`${parent} ${after ?? "-"} ${empty}`);
    const all = children[parent] ?? [];
    const at = after === undefined ? 0 : Number(after);
    const sessions = all.slice(at, at + 2).map((id) => ({
      ...{
        id,
        title: `t-${id}`,
        status: "idle",
        parent: { session: parent, ...(id === "b" ? {} : { call: `c-${id}` }) },
      },
    }));
    return { sessions, ...(at + 2 < all.length ? { next: String(at + 2) } : {}) };
  };
  return { host: { list } as unknown as ServedHost, asked };
}

test("the sub-agents below a session, newest last, whatever the pages, and none twice", async () => {
  const { host, asked } = family({ root: ["a", "b", "c"], b: ["d", "root", "b"] });
  expect(await treeOf(host, "root", "t", "running")).toEqual({
    ...{ session: "root", title: "t", status: "running" },
    children: [
      { session: "c", title: "t-c", status: "idle", call: "c-c", children: [] },
      {
        ...{ session: "b", title: "t-b", status: "idle" },
        children: [{ session: "d", title: "t-d", status: "idle", call: "c-d", children: [] }],
      },
      { session: "a", title: "t-a", status: "idle", call: "c-a", children: [] },
    ],
  });
  expect(asked).toEqual(["root - true", "root 2 true", "a - true", "b - true", "b 2 true", "c - true", "d - true"]);
});

test("a tree has a thousand sessions at most, or a page more", async () => {
  const { host } = family({ root: Array.from({ length: 3000 }, (_, n) => `n${n}`) });
  expect((await treeOf(host, "root", "", "")).children).toHaveLength(1000);
});

test("a session is described from its chat if that is open here, else from its journal", async () => {
  const attributes = { title: "recorded", dialect: "d", labels: { a: "b" } };
  const reading = {
    ...{ id: "s", attributes, holder: null, recovery: {}, usage: { inputTokens: 1 }, cursor: "1-a" },
    ...{ interruption: null, running: null, state: "idle" },
  };
  const host = {
    items: () => [1, 2],
    queue: () => ["recorded"],
    interruption: () => "recorded",
    account: () => "recorded",
    damageWords: () => ["recorded"],
    finishesAfterRestart: (id: string) => id === "s",
  } as unknown as ServedHost;
  const describe = (own: object, chat: object | null = null) =>
    describeSession(host, { reading: { ...reading, ...own } as never, cursor: "1-a" }, chat as never);
  const common = { id: "s", dialect: "d", labels: { a: "b" }, cursor: "1-a", holder: null };
  expect(await describe({})).toEqual({
    ...{ ...common, title: "recorded", status: "idle", count: 2, here: false, state: null },
    ...{
      account: "recorded",
      interruption: "recorded",
      queue: ["recorded"],
      usage: { inputTokens: 1 },
      damage: ["recorded"],
    },
    finishAfterRestart: true,
  });
  const account = { state: "running" };
  const state = {
    ...{ title: "open", status: "waiting", account, items: [1, 2, 3], interruption: null, queue: [], damage: [] },
  };
  expect(await describe({}, { state })).toEqual({
    ...{ ...common, title: "open", status: "waiting", count: 3, here: true, state: stateShown(state as never) },
    ...{ account, interruption: null, queue: [], usage: { inputTokens: 1 }, damage: [], finishAfterRestart: true },
  });
  for (const [status, shown] of [
    ["running", "running"],
    ["idle", "failed"],
    ["interrupted", "failed"],
  ])
    expect(await describe({}, { state: { ...state, status, account: { state: "failed" } } })).toMatchObject({
      status: shown,
    });
  const { items: _items, ...rest } = state;
  expect(stateShown(state as never)).toEqual({ ...rest, count: 3 });
  const all = { cwd: "/w", app: "x", parent: { session: "p" }, forkedFrom: { session: "f" } };
  expect(await describe({ attributes: { ...attributes, ...all } })).toMatchObject(all);
  expect(await describe({ state: "stopped" })).toMatchObject({ status: "stopped" });
});

test("the items of a view that changes are made each time", () => {
  let made = 0;
  const host = { items: () => [++made] } as unknown as ServedHost;
  const [open, closed] = [{}, { cursor: "1-a" }];
  for (const view of [open, open, closed, closed]) itemsIn(host, view as never);
  expect(made).toBe(3);
});
