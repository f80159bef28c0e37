import { callStateWords } from "@holdfast/server/internal/contract";
import { expect, test } from "vitest";
import type { TimelineEntry } from "../../../src/api/wire.ts";
import {
  type History,
  type Mark,
  type ModelSpan,
  readTimeline,
  type StepSpan,
  type ToolSpan,
  type TurnSpan,
} from "../../../src/state/read-timeline.ts";
import {
  type Bar,
  groupMarks,
  layOutDetail,
  layOutTimeline,
  pickBar,
  visibleBars,
} from "../../../src/timeline/layout.ts";
import { barWords, MARK_WORDS, markWords, TURN_WORDS } from "../../../src/timeline/words.ts";

const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
const read = (entries: readonly object[], own: object = {}): History =>
  readTimeline({
    ...{ cursor: null, turns: 7, lanes: 2, isMerged: true, from: at(0), to: at(100) },
    entries: entries as TimelineEntry[],
    ...own,
  });

const turn = (own: Partial<TurnSpan> = {}): TurnSpan => ({
  ...{ kind: "turn", turn: 1, startMs: 0, endMs: 10_000, count: 1, text: "go", outcome: "completed" },
  ...own,
});
const model = (own: Partial<ModelSpan> = {}): ModelSpan => ({
  ...{ kind: "model", turn: 1, startMs: 0, endMs: 4000, count: 1, firstMs: null, message: "m", model: "gpt" },
  ...own,
});
const tool = (own: Partial<ToolSpan> = {}): ToolSpan => ({
  ...{ kind: "tool", turn: 1, startMs: 4000, endMs: 6000, count: 1, call: "c", name: "read", about: "a.ts" },
  ...{ outcome: "done", child: null, steps: [], moreSteps: 0, unusedSteps: "" },
  ...own,
});
const mark = (kind: Mark["kind"], atMs: number, own: Partial<Mark> = {}): Mark => ({
  ...{ kind, atMs, turn: 1, words: "", count: 1 },
  ...own,
});
const history = (own: Partial<History> = {}): History => ({
  ...{ startMs: 0, endMs: 10_000, turnsInAll: 1, lanes: 1, isMerged: false },
  ...{ turns: [], models: [], tools: [], marks: [] },
  ...own,
});
const bar = (from: number, to: number): Bar => ({ kind: "tool", span: tool(), from, to, row: 2, steps: [] });
const step = (name: string, own: Partial<StepSpan> = {}): StepSpan => ({
  ...{ name, startMs: 4000, endMs: 5000, outcome: "done", settled: "" },
  ...own,
});
const places = (bars: readonly Bar[]) => bars.map(({ from, to }) => [from, to]);

test("what the server tells of a session is read by kind, with all that it tells", () => {
  const got = read([
    { kind: "turn", turn: 1, from: at(1), to: at(50), seq: 1, prompt: "go", outcome: "completed", count: 3 },
    { kind: "model", turn: 1, from: at(2), to: at(9), seq: 2, first: at(3), message: "m", model: "gpt" },
    { kind: "model", turn: 1, from: at(10), to: null, seq: 3, message: null },
    { kind: "tool", turn: 1, from: at(4), to: at(6), seq: 4, call: "c", name: "n", about: "x", outcome: "failed" },
    { kind: "tool", turn: 1, from: at(7), to: at(8), seq: 5, call: "d", name: "n", outcome: "done", child: "s" },
    { kind: "mark", mark: "signal", at: at(20), seq: 6, turn: null, words: "SIGTERM", count: 2 },
    ...["opened", "closed", "repaired"].map((quiet) => ({ kind: "mark", mark: quiet, at: at(20), turn: 1, words: "" })),
    { kind: "wait", turn: 2, from: at(30), to: at(31), seq: 7, reason: "permission" },
    { kind: "wait", turn: 2, from: at(32), to: at(33), seq: 8, reason: "a key", count: 4 },
  ]);
  expect(got).toEqual({
    ...{ startMs: 0, endMs: 100_000, turnsInAll: 7, lanes: 2, isMerged: true },
    turns: [turn({ startMs: 1000, endMs: 50_000, count: 3 })],
    models: [
      model({ startMs: 2000, endMs: 9000, firstMs: 3000 }),
      model({ startMs: 10_000, endMs: null, message: null, model: null }),
    ],
    tools: [
      tool({ name: "n", about: "x", outcome: "failed" }),
      tool({ startMs: 7000, endMs: 8000, call: "d", name: "n", about: "", child: "s" }),
    ],
    marks: [
      mark("signal", 20_000, { turn: null, words: "SIGTERM", count: 2 }),
      mark("waiting", 30_000, { turn: 2, words: "waited for approval" }),
      mark("waiting", 32_000, { turn: 2, words: "waited: a key", count: 4 }),
    ],
  });
});

test("a failed turn is marked at its end, in the words of its error", () => {
  const failed = { kind: "turn", turn: 3, from: at(1), seq: 1, prompt: "", outcome: "failed" };
  expect(read([{ ...failed, to: at(5), error: "no credit", count: 2 }]).marks).toEqual([
    mark("failed", 5000, { turn: 3, words: "no credit", count: 2 }),
  ]);
  expect(read([{ ...failed, to: at(5) }]).marks).toEqual([mark("failed", 5000, { turn: 3, words: "the turn failed" })]);
  expect(read([{ ...failed, to: null }]).marks).toEqual([]);
  expect(read([{ ...failed, to: at(5), outcome: "completed" }]).marks).toEqual([]);
});

test("what has no recorded end and does not run ended with its process, or with the record", () => {
  const started = (from: number, outcome: string) => ({
    ...{ kind: "tool", turn: 1, from: at(from), to: null, seq: from, call: `${from}`, name: "n", outcome },
  });
  const died = (second: number) => ({ kind: "mark", mark: "died", at: at(second), seq: 9, turn: 1, words: "" });
  const open = { kind: "turn", turn: 1, from: at(1), to: null, seq: 1, prompt: "go", outcome: "interrupted" };
  const entries = [open, started(2, "unknown"), died(5), { ...died(6), mark: "signal" }, died(8)];
  const ends = ({ turns, tools }: History) => [...turns, ...tools].map(({ endMs }) => endMs);
  expect(ends(read([...entries, started(6, "unknown"), started(8, "unknown"), started(9, "unknown")]))).toEqual([
    ...[100_000, 5000, 8000, 8000, 100_000],
  ]);
  expect(read([started(2, "unknown")]).tools).toEqual([
    tool({ startMs: 2000, endMs: 100_000, call: "2", name: "n", about: "", outcome: "unknown" }),
  ]);
  expect(ends(read([{ ...open, outcome: "running" }, started(2, "running"), died(5)]))).toEqual([null, null]);
  // A session that has no end has no bar that ends before it begins.
  const endless = read([open, started(2, "unknown")], { from: null, to: null });
  expect([endless.startMs, endless.endMs, ...ends(endless)]).toEqual([null, null, 1000, 2000]);
});

test("turns, model calls and tools are laid out in rows, each sorted, on one axis", () => {
  const layout = layOutTimeline(
    history({
      turns: [turn({ startMs: 1000, endMs: 9000 })],
      models: [
        model({ startMs: 5000, endMs: 7000, firstMs: 8000 }),
        model({ startMs: 1000, endMs: 3000, firstMs: 2000 }),
        model({ startMs: 3000, endMs: 4000 }),
      ],
      tools: [
        tool({ startMs: 6000, endMs: 8000 }),
        tool({ startMs: 4000, endMs: 7000 }),
        tool({ startMs: 9000, endMs: 8500 }),
      ],
      marks: [mark("resumed", 5000), mark("died", 2000)],
    }),
    99_000,
  );
  expect(layout.scale).toMatchObject({ startMs: 1000, endMs: 10_000, length: 9000 });
  expect(layout.rows.map(places)).toEqual([
    [[0, 8000]],
    [
      [0, 2000],
      [2000, 3000],
      [4000, 6000],
    ],
    [
      [3000, 6000],
      [8000, 8000],
    ],
    [[5000, 7000]],
  ]);
  expect(layout.rows.map((row, index) => row.every((one) => one.row === index))).toEqual([true, true, true, true]);
  expect(layout.rows.map((row) => [...new Set(row.map(({ kind }) => kind))].join())).toEqual([
    ...["turn", "model", "tool", "tool"],
  ]);
  // Where the first word came: never after the end, and at the start if nobody knows.
  expect(layout.rows[1]!.map((one) => one.kind === "model" && one.first)).toEqual([1000, 2000, 6000]);
  expect(layout.marks.map((one) => [one.mark.kind, one.at])).toEqual([
    ["died", 1000],
    ["resumed", 4000],
  ]);
});

test("the axis goes on until now while the last turn or the last answer does", () => {
  const endOf = (own: Partial<History>) => layOutTimeline(history(own), 15_000).scale.endMs;
  const [done, open] = [turn(), turn({ endMs: null })];
  expect(endOf({ turns: [done] })).toBe(10_000);
  expect(endOf({ turns: [done, open] })).toBe(15_000);
  expect(endOf({ turns: [open, done] })).toBe(10_000);
  expect(endOf({ turns: [done], models: [model({ endMs: null })] })).toBe(15_000);
  // A model call that broke off long ago has no end either.
  expect(endOf({ turns: [done], models: [model({ endMs: null }), model()] })).toBe(10_000);
  expect(endOf({ turns: [done], endMs: null })).toBe(15_000);
  expect(layOutTimeline(history({ turns: [open] }), 15_000).rows[0]).toMatchObject([{ from: 0, to: 15_000 }]);
});

test("the axis begins with the first turn, else with the session, else now", () => {
  const startOf = (own: Partial<History>) => layOutTimeline(history(own), 15_000).scale.startMs;
  expect(startOf({ turns: [turn({ startMs: 3000 })] })).toBe(3000);
  expect(startOf({ startMs: 2000 })).toBe(2000);
  expect(startOf({ startMs: null })).toBe(15_000);
  // It has a length even if the clock of the page is behind.
  expect(layOutTimeline(history({ startMs: 20_000, endMs: null }), 15_000).scale.length).toBe(1);
});

test("answers, calls, marks and beginnings of turns keep time from being folded", () => {
  const HOUR = 3_600_000;
  const foldsOf = (own: Partial<History>) => layOutTimeline(history({ endMs: 10 * HOUR, ...own }), 0).scale.folds;
  const bounds = (own: Partial<History>) => foldsOf(own).map(({ startMs, endMs }) => [startMs / HOUR, endMs / HOUR]);
  expect(bounds({})).toEqual([[0, 10]]);
  expect(bounds({ models: [model({ startMs: 3 * HOUR, endMs: 4 * HOUR })] })).toEqual([
    [0, 3],
    [4, 10],
  ]);
  expect(bounds({ tools: [tool({ startMs: 3 * HOUR, endMs: 4 * HOUR })] })).toEqual([
    [0, 3],
    [4, 10],
  ]);
  expect(bounds({ marks: [mark("died", 3 * HOUR)] })).toEqual([
    [0, 3],
    [3, 10],
  ]);
  const turns = [turn({ endMs: HOUR }), turn({ startMs: 3 * HOUR, endMs: 10 * HOUR })];
  expect(bounds({ turns })).toEqual([
    [0, 3],
    [3, 10],
  ]);
});

test("there are as many rows for tools as ran side by side in the whole session, four at most", () => {
  const side = (count: number) => Array.from({ length: count }, (_, n) => tool({ startMs: 4000 + n, call: `${n}` }));
  const rowsOf = (lanes: number, count: number) => layOutTimeline(history({ lanes, tools: side(count) }), 0).rows;
  expect([rowsOf(0, 0), rowsOf(1, 3), rowsOf(3, 1), rowsOf(9, 1), rowsOf(9, 9)].map((rows) => rows.length - 2)).toEqual(
    [1, 3, 3, 4, 4],
  );
  expect(rowsOf(9, 6)[5]).toHaveLength(3);
  const whole = layOutTimeline(history({ lanes: 3 }), 0);
  const detail = layOutDetail(whole, history({ lanes: 1, tools: side(1) }));
  expect(detail).toMatchObject({ scale: { endMs: 10_000 }, marks: [] });
  expect(detail.rows.map((row) => row.length)).toEqual([0, 0, 1, 0, 0]);
});

test("bars are visible if any part of them is, and so are those that began long before", () => {
  const row = [bar(0, 10), bar(20, 30), bar(40, 50), bar(60, 70)];
  const seen = (from: number, to: number) => places(visibleBars(row, { from, to })).map(([start]) => start);
  expect(seen(0, 70)).toEqual([0, 20, 40, 60]);
  expect(seen(30, 40)).toEqual([20, 40]);
  expect(seen(31, 39)).toEqual([]);
  expect(seen(25, 26)).toEqual([20]);
  expect(seen(-9, -1)).toEqual([]);
  expect(seen(71, 99)).toEqual([]);
  // Of bars that overlap, eight before the last one that has begun.
  const long = Array.from({ length: 20 }, (_, n) => bar(n, 100));
  expect(visibleBars(long, { from: 15, to: 15 }).map(({ from }) => from)).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
  expect(visibleBars(long.slice(0, 3), { from: 15, to: 16 })).toHaveLength(3);
  expect(visibleBars([bar(0, 3), bar(1, 9), bar(2, 9)], { from: 5, to: 6 })).toHaveLength(2);
  expect(visibleBars([bar(0, 5), bar(1, 2)], { from: 5, to: 6 })).toHaveLength(1);
});

test("the bar under the pointer is picked, else the nearest within reach", () => {
  const row = [bar(0, 10), bar(20, 30), bar(36, 40)];
  const picked = (position: number, reach: number) => pickBar(row, position, reach)?.from ?? null;
  expect([0, 5, 10, 20, 30].map((position) => picked(position, 0))).toEqual([0, 0, 0, 20, 20]);
  expect([picked(12, 3), picked(18, 3), picked(15, 4)]).toEqual([0, 20, null]);
  expect([picked(14, 9), picked(17, 9), picked(34, 5), picked(32, 5)]).toEqual([0, 20, 36, 20]);
  expect([picked(33, 9), picked(13, 3), picked(17, 3)]).toEqual([36, null, null]);
  expect([picked(-3, 2), picked(-1, 2), picked(99, 5)]).toEqual([null, 0, null]);
  expect(pickBar([], 0, 9)).toBeNull();
  // It looks at no more than 64.
  const many = [bar(0, 1000), ...Array.from({ length: 64 }, (_, n) => bar(n + 1, n + 1))];
  expect(pickBar(many, 500, 1)).toBeNull();
  expect(pickBar(many.slice(0, 64), 500, 1)?.from).toBe(0);
});

test("marks are grouped from the first of each group on, counted, and named after the gravest", () => {
  const placed = (kind: Mark["kind"], place: number, count = 1) => ({
    mark: mark(kind, place, { count }),
    at: place,
  });
  const marks = [placed("waiting", 0), placed("stopped", 10, 3), placed("failed", 14), placed("resumed", 15)];
  const groups = groupMarks([...marks, placed("signal", 16), placed("died", 20)], { from: 10, to: 16 }, 5);
  expect(groups.map(({ at: place, count, worst }) => [place, count, worst.kind])).toEqual([
    [10, 4, "failed"],
    [15, 2, "signal"],
  ]);
  expect(groups[0]!.marks).toHaveLength(2);
  const gravest = ["died", "failed", "signal", "stopped", "not-run", "replaced", "waiting", "resumed"] as const;
  for (const [index, kind] of gravest.entries()) {
    const milder = gravest.slice(index).reverse();
    const all = milder.map((one) => placed(one, 0));
    expect(groupMarks(all, { from: 0, to: 9 }, 1)[0]!.worst.kind).toBe(kind);
  }
});

test("a bar says what it is, how it ended and how long it took", () => {
  const row = { from: 0, to: 0, row: 0 };
  const words = (span: TurnSpan | ModelSpan | ToolSpan, nowMs = 0): string[] => {
    const { title, detail } = barWords({ ...row, kind: span.kind, span, first: 0 } as Bar, nowMs);
    return [title, detail];
  };
  expect(words(turn())).toEqual(["Turn 1: go", "completed · 10 s"]);
  expect(words(turn({ text: "", outcome: "aborted" }))).toEqual(["Turn 1: (no text)", "stopped · 10 s"]);
  expect(words(turn({ endMs: null, outcome: "running" }), 5000)).toEqual(["Turn 1: go", "running · 5.0 s"]);
  expect(words(turn({ startMs: 9000, endMs: null, outcome: "running" }), 0)[1]).toBe("running · 0 ms");
  expect(words(model())).toEqual(["gpt", "4.0 s"]);
  expect(words(model({ startMs: 1000, firstMs: 1500, message: null, model: null }))).toEqual([
    ...["Model", "3.0 s · first word after 500 ms · no answer recorded"],
  ]);
  expect(words(tool())).toEqual(["read a.ts", "done · 2.0 s"]);
  expect(words(tool({ about: "", outcome: "not-run" }))).toEqual(["read", "did not run · 2.0 s"]);
  expect(words(tool({ count: 2 }))).toEqual(["2 tool calls", "in 2.0 s · zoom in to see each"]);
  expect(words(turn({ count: 2 }))).toEqual(["2 turns", "in 10 s · zoom in to see each"]);
  expect(words(turn({ count: 2, outcome: "left" }))[1]).toBe(
    "in 10 s · at least one left unfinished · zoom in to see each",
  );
  expect(words(model({ count: 3 }))).toEqual(["3 model calls", "in 4.0 s · zoom in to see each"]);
});

test("a mark says what happened, in which turn and when", () => {
  const noon = new Date(2026, 0, 2, 13, 4, 5).getTime();
  expect(markWords(mark("died", noon))).toBe("Process died · turn 1, 13:04:05");
  expect(markWords(mark("died", noon, { turn: null }))).toBe("Process died · 13:04:05");
  expect(markWords(mark("died", noon, { turn: 0 }))).toBe("Process died · 13:04:05");
  expect(markWords(mark("failed", noon, { words: "no credit.", count: 3 }))).toBe(
    "No credit (and 2 more here) · turn 1, 13:04:05",
  );
  expect(markWords(mark("failed", noon, { words: "x", count: 2 }))).toBe("X (and 1 more here) · turn 1, 13:04:05");
});

test("every outcome and every mark has words of its own", () => {
  for (const words of [callStateWords, TURN_WORDS, MARK_WORDS].map((table) => Object.values(table))) {
    expect(words.filter((one) => one.trim() === "")).toEqual([]);
    expect(new Set(words).size).toBe(words.length);
  }
});

test("steps are read with their tool; one without an end goes on, or ended with its tool", () => {
  const of = (second: number, to: number | null, outcome: string, own: object = {}) => ({
    ...{ name: `${second}`, from: at(second), to: to === null ? null : at(to), outcome },
    ...own,
  });
  const started = (own: object) => ({
    ...{ kind: "tool", turn: 1, from: at(2), to: null, seq: 2, call: "c", name: "n", outcome: "unknown" },
    ...own,
  });
  const steps = [of(2, 3, "done"), of(3, 4, "failed", { settled: "asked" }), of(4, null, "unknown")];
  const died = { kind: "mark", mark: "died", at: at(7), seq: 9, turn: 1, words: "" };
  const cut = read([started({ steps, moreSteps: 4 }), died]).tools;
  expect(cut).toMatchObject([
    {
      ...{ endMs: 7000, moreSteps: 4, unusedSteps: "" },
      steps: [
        step("2", { startMs: 2000, endMs: 3000 }),
        step("3", { startMs: 3000, endMs: 4000, outcome: "failed", settled: "asked" }),
        step("4", { startMs: 4000, endMs: 7000, outcome: "unknown" }),
      ],
    },
  ]);
  const endsOf = (own: object) =>
    read([started(own), died]).tools.map((one) => [one.endMs, ...one.steps.map(({ endMs }) => endMs)]);
  // It ended with its tool, not with a process that died later; or it began at that moment.
  expect(endsOf({ to: at(5), outcome: "failed", steps: [of(4, null, "unknown"), of(6, null, "unknown")] })).toEqual([
    [5000, 5000, 6000],
  ]);
  expect(endsOf({ outcome: "running", steps: [of(4, null, "running")] })).toEqual([[null, null]]);
  expect(read([started({ unusedSteps: "gone" })]).tools).toMatchObject([{ steps: [], unusedSteps: "gone" }]);
});

test("steps are placed inside the bar of their tool, also those that go on or went on longer", () => {
  const steps = [
    step("a", { startMs: 4000, endMs: 4500 }),
    step("b", { startMs: 3000, endMs: 9000, outcome: "failed" }),
    step("c", { startMs: 5000, endMs: null, outcome: "running" }),
  ];
  const placed = (own: Partial<ToolSpan>) =>
    layOutTimeline(history({ turns: [turn()], tools: [tool({ steps, ...own })] }), 0).rows[2]!.map((one) =>
      one.kind === "tool" ? one.steps.map(({ outcome, from, to }) => [outcome, from, to]) : null,
    );
  expect(placed({})).toEqual([
    [
      ["done", 4000, 4500],
      ["failed", 4000, 6000],
      ["running", 5000, 6000],
    ],
  ]);
  expect(placed({ endMs: null })[0]![2]).toEqual(["running", 5000, 10_000]);
});

test("the details of a tool name its steps, those that did not finish first if there are too many", () => {
  const linesOf = (own: Partial<ToolSpan>) =>
    barWords({ ...{ kind: "tool", from: 0, to: 0, row: 2, steps: [] }, span: tool(own) }, 9000).lines;
  const some = [
    step("reserve"),
    step("charge", { outcome: "failed", settled: "settled by asking the service" }),
    step("mail", { outcome: "unknown", endMs: 4200 }),
    step("post", { outcome: "running", endMs: null }),
  ];
  expect(linesOf({ steps: some })).toEqual([
    "reserve: done · 1.0 s",
    "charge: failed · settled by asking the service",
    "mail: outcome unknown · 200 ms",
    "post: running · 5.0 s",
  ]);
  expect(linesOf({ unusedSteps: "it did not ask" })).toEqual(["it did not ask"]);
  expect(linesOf({ moreSteps: 4 })).toEqual(["4 steps"]);
  const many = [...Array.from({ length: 9 }, (_, n) => step(`${n}`)), ...some];
  expect(linesOf({ steps: many, moreSteps: 1 })!.map((line) => line.split(":")[0])).toEqual([
    ...["charge", "mail", "post", "0", "1", "2", "3", "4", "and 6 more steps"],
  ]);
  expect(linesOf({ steps: many.slice(0, 8) })!).toHaveLength(8);
  expect(linesOf({ steps: many.slice(0, 9) })!.at(-1)).toBe("and 1 more step");
  expect(linesOf({ count: 2, steps: some })).toBeUndefined();
});
