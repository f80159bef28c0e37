import type { JournalRecord } from "holdfast";
import { expect, test } from "vitest";
import { atResolution, TIMELINE_BYTES_MAX } from "../../../src/reading/resolution.ts";
import { TimelineFold } from "../../../src/reading/timeline.ts";
import { UsageFold } from "../../../src/reading/usage.ts";

function read(message: unknown) {
  const {
    role,
    content,
    calls = [],
    answers = [],
  } = message as {
    role: string;
    content?: unknown;
    calls?: { id: string; name: string; input: unknown }[];
    answers?: { call: string; failed: boolean }[];
  };
  return { role, text: String(content), calls, answers };
}

function records(...given: readonly (readonly [kind: string, members?: object])[]): JournalRecord[] {
  return given.map(([kind, members], index) => ({
    ...{ seq: index + 1, at: new Date(Date.UTC(2026, 10, 16, 0, 0, index)).toISOString(), kind, crc: "0" },
    ...members,
  }));
}

const WHOLE = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY, buckets: 600 };

function folded(list: readonly JournalRecord[]): TimelineFold {
  const timeline = new TimelineFold(read);
  for (const record of list) timeline.add(record);
  return timeline;
}

function fold(isRunning: boolean, list: readonly JournalRecord[]) {
  return atResolution(folded(list).happenings(isRunning), WHOLE).entries.map(({ kind, ...rest }) => {
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

test.each([
  ["user", "aborted", "stopped by user"],
  ["", "aborted", "stopped by the application"],
  ["close", "interrupted", "interrupted: its program was closed"],
  ["server", "interrupted", "interrupted: its program was closed"],
])("the end of a turn that was aborted by %j is told as the account tells it", (by, outcome, words) => {
  const list = records(["opened"], ["turn.started", { turn: 1 }], ["turn.ended", { turn: 1, outcome: "aborted", by }]);
  const { entries } = atResolution(folded(list).happenings(true), WHOLE);
  expect(entries).toMatchObject([
    { kind: "turn", outcome },
    { kind: "mark", mark: "stopped", words },
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
  const call = { id: "c1", name: "read", input: { path: "a.ts" } };
  const list = records(
    ["opened"],
    ["turn.started", { turn: 1, prompt: "m1" }],
    ["message", PROMPT],
    ["draft", { id: "m2", turn: 1, n: 0 }],
    ["draft", { id: "m2", turn: 1, n: 1 }],
    ["message", { id: "m2", turn: 1, message: { role: "assistant", calls: [call] } }],
    ["tool.started", CALL],
  );
  const { entries } = atResolution(folded(list).happenings(false), WHOLE);
  expect(entries.find(({ kind }) => kind === "model")).toMatchObject({
    from: list[2]!.at,
    first: list[3]!.at,
  });
  expect(entries.find(({ kind }) => kind === "tool")).toMatchObject({ about: "a.ts" });
});

const CALLS = [
  { id: "c1", name: "shell", input: { command: "npm publish" } },
  { id: "c2", name: "post", input: { path: "#releases" } },
  { id: "c3", name: "post", input: {} },
];
const ASKED = { id: "m2", turn: 1, message: { role: "assistant", calls: CALLS } };
const CUT_OFF = [
  ["opened", { intents: true }],
  ["turn.started", { turn: 1, prompt: "m1" }],
  ["message", PROMPT],
  ["message", ASKED],
  ["tool.started", CALL],
  ["usage", { turn: 1, usage: {} }],
] as const;

test("calls that had not started when the process died are on the timeline, and in words", () => {
  const { entries } = atResolution(folded(records(...CUT_OFF)).happenings(false), WHOLE);
  const tools = entries.filter((one) => one.kind === "tool");
  expect(tools.map(({ call, outcome }) => [call, outcome])).toEqual([
    ["c2", "not-run"],
    ["c3", "not-run"],
    ["c1", "unknown"],
  ]);
  expect(tools[0]).toMatchObject({
    about: "#releases",
    from: "2026-11-16T00:00:03.000Z",
    to: "2026-11-16T00:00:05.000Z",
  });
  expect(entries.flatMap((one) => (one.kind === "mark" ? [[one.mark, one.words]] : []))).toEqual([
    ["died", "the process died"],
    ["not-run", "2 tool calls had not started: post, post"],
  ]);
});

test.each([
  ["the process still runs", [], true, []],
  ["another process opens the session", [["opened", { intents: true }]], true, ["c2", "c3"]],
  ["the turn is stopped", [["turn.ended", { turn: 1, outcome: "aborted" }]], true, ["c2", "c3"]],
  ["the turn completes", [["turn.ended", { turn: 1, outcome: "completed" }]], true, []],
  ["the turn waits for a person", [["turn.suspended", { turn: 1, reason: "permission" }]], false, []],
  [
    "one is answered by a message",
    [["message", { turn: 1, message: { role: "tool", answers: [{ call: "c2", failed: true }] } }]],
    false,
    ["c3"],
  ],
] as const)("a call has not started: %s", (_when, more, isRunning, expected) => {
  const { entries } = atResolution(folded(records(...CUT_OFF, ...more)).happenings(isRunning), WHOLE);
  const missed = entries.flatMap((one) => (one.kind === "tool" && one.outcome === "not-run" ? [one.call] : []));
  expect(missed).toEqual(expected);
});

test("without the promise to record every start, nobody knows whether a call started", () => {
  const [, ...rest] = CUT_OFF;
  expect(fold(false, records(["opened"], ...rest)).filter(([, what]) => what === "not-run")).toEqual([]);
});

test("a result that comes as a message ends its tool", () => {
  const result = { turn: 1, message: { role: "tool", answers: [{ call: "c1", failed: false }] } };
  expect(fold(false, records(...CUT_OFF, ["message", result]))).toContainEqual(["tool", "done", 4, 6]);
});

test("a fold goes on after it was looked at, as if nobody had", () => {
  const all = records(...CUT_OFF, ["turn.ended", { turn: 1, outcome: "aborted", by: "user" }], ["closed"]);
  const looked = new TimelineFold(read);
  for (const record of all) {
    looked.add(record);
    looked.happenings(false);
    looked.happenings(true);
  }
  expect(looked.happenings(false)).toEqual(folded(all).happenings(false));
});

test("conversations that were replaced are listed with their last record; the source of a fork is not one", () => {
  const list = records(
    ["epoch", { reason: "fork" }],
    ["message", { ...PROMPT, carried: true }],
    ["message", PROMPT],
    ["segment"],
    ["epoch", { reason: "compaction" }],
    ["message", { ...PROMPT, carried: true }],
    ["epoch", { reason: "rewind" }],
  );
  expect(folded(list).replaced).toMatchObject([
    { until: 4, reason: "compaction", messages: 2 },
    { until: 6, reason: "rewind", messages: 1 },
  ]);
});

const STEPS = 5000;

/** `count` steps of a model call and a tool, over days, with a death after every tenth. */
function longSession(count: number): TimelineFold {
  const timeline = new TimelineFold(read);
  let [seq, ms] = [0, Date.UTC(2026, 0, 1)];
  const add = (kind: string, members: object = {}): void => {
    seq++;
    ms += 137;
    timeline.add({ seq, at: new Date(ms).toISOString(), kind, crc: "0", ...members } as JournalRecord);
  };
  add("opened", { intents: true });
  for (let step = 1; step <= count; step++) {
    if (step % 10 === 1) {
      ms += 3_600_000;
      add("turn.started", { turn: step });
      add("message", { turn: step, message: { role: "user", content: "\u0001".repeat(500) } });
    }
    const call = { turn: step, call: `c${step}`, message: `m${step}`, name: "shell".repeat(100) };
    add("message", {
      id: `m${step}`,
      turn: step,
      message: { role: "assistant", calls: [{ id: call.call, name: "x", input: {} }] },
    });
    add("tool.started", call);
    if (step % 500 === 0) add("opened", { intents: true });
    else add("tool.ended", call);
    if (step % 10 === 0)
      add("turn.ended", { turn: step, outcome: step % 70 === 0 ? "aborted" : "completed", by: "user" });
  }
  return timeline;
}

test.each([600, 2000])("a timeline is at most 200 KB, whatever the session's size (%i buckets)", (buckets) => {
  const timeline = longSession(STEPS);
  const happenings = timeline.happenings(false);
  expect(happenings.length).toBeGreaterThan(2 * STEPS);
  const { entries, isMerged } = atResolution(happenings, { ...WHOLE, buckets });
  expect(isMerged).toBe(true);
  expect(Buffer.byteLength(JSON.stringify(entries))).toBeLessThanOrEqual(TIMELINE_BYTES_MAX);
  const countOf = (list: readonly { readonly count?: number | undefined }[]): number =>
    list.reduce((sum, { count = 1 }) => sum + count, 0);
  const marksIn = (mark: string) => entries.filter((one) => one.kind === "mark" && one.mark === mark);
  expect(countOf(marksIn("died"))).toBe(happenings.filter((one) => one.kind === "mark" && one.mark === "died").length);
  expect(countOf(marksIn("stopped"))).toBe(Math.floor(STEPS / 70));
  for (const kind of ["turn", "model", "tool"] as const)
    expect(countOf(entries.filter((one) => one.kind === kind))).toBe(
      happenings.filter((one) => one.kind === kind).length,
    );
  // An outcome that nobody knows is not hidden behind others.
  const unknown = entries.filter((one) => one.kind === "tool" && one.outcome === "unknown");
  expect(unknown).toHaveLength(STEPS / 500);
});

test("a window shows each bar by itself, and nothing outside it", () => {
  const timeline = longSession(STEPS);
  const happenings = timeline.happenings(false);
  const middle = happenings[STEPS]!.startMs;
  const window = { fromMs: middle - 2000, toMs: middle + 2000, buckets: 600 };
  const { entries, isMerged } = atResolution(happenings, window);
  expect(isMerged).toBe(false);
  expect(entries.length).toBeGreaterThan(10);
  for (const entry of entries) {
    expect(Date.parse(entry.kind === "mark" ? entry.at : entry.from)).toBeLessThanOrEqual(window.toMs);
    expect(Date.parse(entry.kind === "mark" ? entry.at : (entry.to ?? entry.from))).toBeGreaterThanOrEqual(
      window.fromMs,
    );
  }
});

test("tools that nobody ended are merged too", () => {
  const timeline = new TimelineFold(read);
  for (let seq = 1; seq <= 5000; seq++)
    timeline.add({
      seq,
      at: new Date(seq * 100).toISOString(),
      kind: "tool.started",
      call: `c${seq}`,
      name: "x",
      crc: "0",
    });
  const { entries } = atResolution(timeline.happenings(true), WHOLE);
  expect(Buffer.byteLength(JSON.stringify(entries))).toBeLessThanOrEqual(TIMELINE_BYTES_MAX);
  expect(entries[0]).toMatchObject({ outcome: "running", to: null });
});

test("names and ids of any length, which a model wrote, do not keep a timeline from being made", () => {
  const long = "x".repeat(200_000);
  const timeline = folded(
    records(
      ["segment"],
      ["session"],
      ["opened", { intents: true }],
      ["turn.started", { turn: 1, prompt: "m1" }],
      ["message", PROMPT],
      [
        "message",
        {
          id: "m2",
          turn: 1,
          message: { role: "assistant", calls: [`${long}1`, "c2"].map((id) => ({ id, name: long })) },
        },
      ],
      ["tool.started", { turn: 1, call: `${long}1`, message: "m2", name: long }],
    ),
  );
  const { entries } = atResolution(timeline.happenings(false), WHOLE);
  expect(Buffer.byteLength(JSON.stringify(entries))).toBeLessThan(TIMELINE_BYTES_MAX);
  // The one that started is known as the one that the model called.
  const tools = entries.flatMap((one) => (one.kind === "tool" ? [one.outcome] : []));
  expect(tools.toSorted()).toEqual(["not-run", "unknown"]);
});

test("an answer that cannot be made small enough is made all the same", () => {
  const words = "x".repeat(TIMELINE_BYTES_MAX);
  const mark = { kind: "mark", mark: "closed", startMs: 0, seq: 1, turn: null, words } as const;
  expect(atResolution([mark, { ...mark, startMs: 9 }], WHOLE)).toMatchObject({ entries: [{ count: 2 }] });
});

test("a replaced conversation begins with its first message, or with the replacement before it, and ends with the next", () => {
  const list = records(
    ["segment"],
    ["opened"],
    ["turn.started", { turn: 1 }],
    ["message", PROMPT],
    ["message", { ...PROMPT, id: "m2" }],
    ["epoch", { reason: "compaction" }],
    ["opened"],
    ["message", { ...PROMPT, id: "m3", carried: true }],
    ["epoch", { reason: "clear" }],
    ["epoch", { reason: "rewind" }],
  );
  const seconds = (ms: number): number => new Date(ms).getUTCSeconds();
  const found = folded(list).replaced.map(({ fromMs, toMs, messages }) => [seconds(fromMs), seconds(toMs), messages]);
  expect(found).toEqual([
    [3, 5, 2],
    [5, 8, 1],
    [8, 9, 0],
  ]);
  // One in which nothing was said begins with the session.
  const [silent] = folded(records(["segment"], ["opened"], ["epoch", { reason: "clear" }])).replaced;
  expect(silent).toMatchObject({ fromMs: Date.UTC(2026, 10, 16), messages: 0 });
});

/** The tools, with what is told of their steps. Times are seconds. */
function toolsOf(isRunning: boolean, list: readonly JournalRecord[]) {
  const { entries } = atResolution(folded(list).happenings(isRunning), WHOLE);
  const seconds = (time: string | null) => time && Number(time.slice(17, 19));
  return entries.flatMap((entry) => {
    if (entry.kind !== "tool") return [];
    const { outcome, from, to, steps, moreSteps, unusedSteps } = entry;
    const bars = steps?.map((step) =>
      [step.name, step.outcome, seconds(step.from), seconds(step.to), step.settled].filter((one) => one !== undefined),
    );
    return [{ tool: [outcome, seconds(from), seconds(to)], steps: bars, moreSteps, unusedSteps }];
  });
}
const step = (name: string, own: object = {}) => ({ turn: 1, call: "c1", message: "m2", step: name, ...own });
const TURN = [["opened"], ["turn.started", { turn: 1, prompt: "m1" }]] as const;
const SETTLED = "settled by asking the service: its outcome is known";

test("steps are told inside the entry of their tool: finished, failed, running", () => {
  const list = records(
    ...TURN,
    ["tool.started", CALL],
    ["step.started", step("reserve")],
    ["step.ended", step("reserve", { value: 1, ms: 5 })],
    ["step.started", step("charge")],
    ["step.started", step("mail")],
    ["step.ended", step("charge", { error: "no money" })],
  );
  const steps = [
    ["reserve", "done", 3, 4],
    ["charge", "failed", 5, 7],
    ["mail", "running", 6, null],
  ];
  expect(toolsOf(true, list)).toEqual([{ tool: ["running", 2, null], steps }]);
  // Asked twice, it tells the same: nothing of it was changed.
  expect(toolsOf(false, list)).toEqual([
    { tool: ["unknown", 2, null], steps: [...steps.slice(0, 2), ["mail", "unknown", 6, null]] },
  ]);
});

test("a step that the death of the process cut off stays unknown; the next run has its own, also those that a probe settled", () => {
  const list = records(
    ...TURN,
    ["tool.started", CALL],
    ["step.started", step("reserve")],
    ["step.ended", step("reserve")],
    ["step.started", step("charge")],
    ["step.started", step("ship")],
    ["opened"],
    ["turn.resumed", { turn: 1, n: 1 }],
    ["tool.started", CALL],
    ["step.ended", step("charge", { value: 1, source: "probe" })],
    ["step.ended", step("ship", { error: "lost", source: "probe" })],
    // An end without a start, and without anybody who says so, is no step of this run.
    ["step.ended", step("other")],
    ["step.started", step("mail")],
    ["step.ended", step("mail")],
    ["tool.ended", { ...CALL, value: 1, unusedSteps: ["reserve", 7, "pack"] }],
  );
  const unusedSteps =
    "shell ran again and did not ask for steps that an earlier run had recorded: reserve, pack. If their names have changed, their work may have been done twice.";
  expect(toolsOf(true, list)).toEqual([
    {
      tool: ["unknown", 2, null],
      steps: [
        ["reserve", "done", 3, 4],
        ["charge", "unknown", 5, null],
        ["ship", "unknown", 6, null],
      ],
    },
    {
      tool: ["done", 9, 15],
      steps: [
        ["charge", "done", 10, 10, SETTLED],
        ["ship", "failed", 11, 11, SETTLED],
        ["mail", "done", 13, 14],
      ],
      unusedSteps,
    },
  ]);
});

test("a step that ends after its tool has its end; after another process came, it has none", () => {
  const before = [
    ...TURN,
    ["tool.started", CALL],
    ["step.started", step("a")],
    ["step.started", step("b")],
    ["step.ended", step("a", { error: "no" })],
    ["tool.ended", { ...CALL, error: "no" }],
  ] as const;
  const ended = ["step.ended", step("b")] as const;
  const last = (...after: readonly (readonly [kind: string, members?: object])[]) =>
    toolsOf(true, records(...before, ...after)).map(({ tool, steps }) => [tool, steps?.at(-1)]);
  expect(last(ended)).toEqual([
    [
      ["failed", 2, 6],
      ["b", "done", 4, 7],
    ],
  ]);
  expect(last(["closed"], ["opened"], ended)).toEqual([
    [
      ["failed", 2, 6],
      ["b", "unknown", 4, null],
    ],
  ]);
  // The call runs again: its steps are those of the new run.
  const again = last(["tool.started", CALL], ["step.started", step("b")], ended);
  expect(again).toEqual([
    [
      ["failed", 2, 6],
      ["b", "unknown", 4, null],
    ],
    [
      ["running", 7, null],
      ["b", "done", 8, 9],
    ],
  ]);
});

test("a call that started before its message was recorded keeps its steps, and its end", () => {
  const early = { ...CALL, message: null };
  const list = records(
    ...TURN,
    ["tool.started", early],
    ["step.started", step("a", { message: null })],
    ["message", { id: "m2", turn: 1, message: { role: "assistant", calls: [{ id: "c1", name: "shell" }] } }],
    ["step.ended", step("a")],
    ["step.started", step("b")],
    ["step.ended", step("b")],
    ["tool.ended", { ...CALL, value: 1 }],
  );
  const steps = [
    ["a", "done", 3, 5],
    ["b", "done", 6, 7],
  ];
  expect(toolsOf(true, list)).toEqual([{ tool: ["done", 2, 8], steps }]);
});

test("what an epoch repeats, what has no name and what has no tool is no step", () => {
  const list = records(
    ...TURN,
    ["step.started", step("before")],
    ["tool.started", CALL],
    ["step.started", step("again", { carried: true })],
    ["step.ended", step("again", { carried: true, source: "probe" })],
    ["step.started", step("")],
    ["step.started", { ...step("x"), step: 7 }],
    ["step.started", step("another's", { call: "c2" })],
  );
  expect(toolsOf(true, list)).toEqual([{ tool: ["running", 3, null] }]);
});

test("of a thousand steps fifty are kept, those that did not finish first, and the rest is counted", () => {
  const many = Array.from({ length: 1000 }, (_, n) => [
    ["step.started", step(`${n}`)] as const,
    ...(n === 3 ? [] : [["step.ended", step(`${n}`, n === 7 ? { error: "no" } : {})] as const]),
  ]).flat();
  const timeline = folded(records(...TURN, ["tool.started", CALL], ...many));
  const [, tool] = atResolution(timeline.happenings(true), WHOLE).entries;
  expect(tool).toMatchObject({ kind: "tool", moreSteps: 950 });
  if (tool?.kind !== "tool") throw new Error("no tool");
  const last = Array.from({ length: 48 }, (_, n) => `${952 + n}`);
  expect(tool.steps!.map(({ name }) => name)).toEqual(["3", "7", ...last]);
  expect(timeline.size).toBe(2 + 50);
  // Also if none of them ended.
  const open = Array.from({ length: 60 }, (_, n) => ["step.started", step(`${n}`)] as const);
  const [, held] = atResolution(
    folded(records(...TURN, ["tool.started", CALL], ...open)).happenings(true),
    WHOLE,
  ).entries;
  expect(held).toMatchObject({ moreSteps: 10 });
});

test("an answer that is too long leaves the steps out, and says how many; a merged bar has none", () => {
  const count = 500;
  const many = Array.from({ length: count }, (_, n) => {
    const of = { call: `c${n}` };
    const steps = ["a", "b", "c", "d"].map((name) => step(name.repeat(40), of));
    return [
      ["tool.started", { ...CALL, ...of }] as const,
      ...steps.map((one) => ["step.started", one] as const),
      ["tool.ended", { ...CALL, ...of, unusedSteps: ["x"] }] as const,
    ];
  }).flat();
  const happenings = folded(records(...TURN, ...many)).happenings(true);
  const whole = atResolution(happenings, WHOLE);
  expect(JSON.stringify(whole.entries).length).toBeLessThan(TIMELINE_BYTES_MAX);
  expect(whole.isMerged).toBe(true);
  const tools = whole.entries.filter(({ kind }) => kind === "tool");
  expect(tools).toHaveLength(count);
  expect(tools.every((one) => one.kind === "tool" && one.steps === undefined && one.moreSteps === 4)).toBe(true);
  const merged = atResolution(happenings, { ...WHOLE, buckets: 5 }).entries.filter(({ kind }) => kind === "tool");
  expect(merged.length).toBeLessThan(20);
  const told = merged.flatMap((one) => Object.keys(one));
  expect(told.filter((name) => /steps/i.test(name))).toEqual([]);
});
