import { expect, test } from "vitest";
import { packLanes } from "../../../src/timeline/lanes.ts";
import { ticksFor } from "../../../src/timeline/ticks.ts";
import { lastIndex, makeTimeScale, pan, reveal, zoom } from "../../../src/timeline/time-scale.ts";

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000] as const;
const span = (startMs: number, endMs: number) => ({ startMs, endMs });
/** An axis on which something happens all the time. */
const busy = (lengthMs: number) => makeTimeScale([span(0, lengthMs)], 0, lengthMs);

test("times stand at the smallest round step that leaves room for their words", () => {
  const cases: [stepMs: number, second: string][] = [
    ...([
      [100, "00:00:00.1"],
      [200, "00:00:00.2"],
      [500, "00:00:00.5"],
    ] as [number, string][]),
    ...[1, 2, 5, 10, 15, 30].map((n): [number, string] => [n * SECOND, `00:00:${String(n).padStart(2, "0")}`]),
    ...[1, 2, 5, 10, 15, 30].map((n): [number, string] => [n * MINUTE, `00:${String(n).padStart(2, "0")}`]),
    ...[1, 2, 3, 6, 12].map((n): [number, string] => [n * HOUR, `${String(n).padStart(2, "0")}:00`]),
    ...[1, 2, 7, 14, 28].map((n): [number, string] => [n * DAY, `01-${String(n + 1).padStart(2, "0")}`]),
  ];
  for (const [index, [step, second]] of cases.entries()) {
    const whole = { from: 0, to: 4 * step };
    const ticks = ticksFor(busy(4 * step), whole, 4, 0);
    expect(ticks.map(({ at }) => at)).toEqual([0, step, 2 * step, 3 * step, 4 * step]);
    expect(ticks[1]!.label).toBe(second);
    // A little more, and the next step is needed.
    const next = cases[index + 1]?.[0];
    const wider = ticksFor(busy(4 * step + 4), { from: 0, to: 4 * step + 4 }, 4, 0);
    if (next !== undefined) expect(wider[1]!.at).toBe(next);
  }
  // There is no larger step: some are left out.
  const places = ticksFor(busy(240 * DAY), { from: 0, to: 240 * DAY }, 4, 0).map(({ at }) => at / DAY);
  expect(places).toEqual([0, 56, 112, 168, 224]);
});

test("times are local, and a part of the axis shows its own", () => {
  const label = (offsetMs: number) => ticksFor(busy(4 * HOUR), { from: 0, to: 4 * HOUR }, 4, offsetMs)[0];
  expect(label(2 * HOUR)).toEqual({ at: 0, label: "02:00" });
  expect(label(90 * MINUTE)).toEqual({ at: 30 * MINUTE, label: "02:00" });
  expect(label(-HOUR)).toEqual({ at: 0, label: "23:00" });
  expect(ticksFor(busy(HOUR), { from: 61 * SECOND, to: 63 * SECOND }, 2, 0).map((tick) => tick.label)).toEqual([
    "00:01:01",
    "00:01:02",
    "00:01:03",
  ]);
  // On an axis without room for a single one, one is aimed at.
  expect(ticksFor(busy(4 * HOUR), { from: 0, to: 2 * HOUR }, 0.1, 0).map(({ at }) => at)).toEqual([0, 2 * HOUR]);
});

test("there is no time inside a fold, nor too close to the one before it", () => {
  const scale = makeTimeScale([span(0, MINUTE), span(HOUR, HOUR + MINUTE)], 0, HOUR + MINUTE);
  const [fold] = scale.folds;
  const seen = (from: number, to: number, count = 4) =>
    ticksFor(scale, { from, to }, count, 0).map(({ label }) => label);
  expect(seen(0, scale.length, 8)).toEqual(["00:00:00", "00:00:30", "00:01:00", "01:00:30", "01:01:00"]);
  expect(seen(fold!.to, scale.length)).toEqual(["01:00:00", "01:00:15", "01:00:30", "01:00:45", "01:01:00"]);
  expect(seen(0, fold!.from)).toEqual(["00:00:00", "00:00:15", "00:00:30", "00:00:45", "00:01:00"]);
  expect(seen(fold!.from + 10, fold!.to - 10)).toEqual([]);
});

test("a pause of twenty seconds is drawn as it is, a longer one is folded", () => {
  const paused = (ms: number) => makeTimeScale([span(0, 5000), span(5000 + ms, 10_000 + ms)], 0, 10_000 + ms);
  expect(paused(20_000)).toMatchObject({ folds: [], length: 30_000 });
  expect(paused(20_001).folds).toEqual([{ startMs: 5000, endMs: 25_001, from: 5000, to: 5350 }]);
  expect(paused(20_001).length).toBeCloseTo(10_350);
  // Beside ten hours of work, ten minutes are short.
  const long = makeTimeScale([span(0, 5 * HOUR), span(5 * HOUR + 10 * MINUTE, 10 * HOUR)], 0, 10 * HOUR);
  expect(long.folds).toEqual([]);
});

test("what was idle before the first span, between them and after the last is folded, whatever their order", () => {
  const spans = [span(5 * HOUR, 5 * HOUR + MINUTE), span(HOUR, HOUR + MINUTE), span(HOUR, HOUR + 2 * MINUTE)];
  const scale = makeTimeScale(spans, 0, 9 * HOUR);
  expect(scale.folds.map(({ startMs, endMs }) => [startMs / MINUTE, endMs / MINUTE])).toEqual([
    [0, 60],
    [62, 300],
    [301, 540],
  ]);
  const width = 3 * MINUTE * 0.035;
  expect(scale.folds.map(({ from, to }) => [from, to])).toEqual([
    [0, width],
    [width + 2 * MINUTE, 2 * width + 2 * MINUTE],
    [2 * width + 3 * MINUTE, 3 * width + 3 * MINUTE],
  ]);
  expect(scale.length).toBeCloseTo(3 * width + 3 * MINUTE);
  // Halfway through a fold is halfway in time.
  expect(scale.at(30 * MINUTE)).toBeCloseTo(width / 2);
  expect(scale.timeAt(width / 2)).toBeCloseTo(30 * MINUTE);
  expect(scale.at(HOUR + MINUTE)).toBeCloseTo(width + MINUTE);
  expect(scale.timeAt(width + MINUTE)).toBeCloseTo(HOUR + MINUTE);
  expect(scale.at(5 * HOUR + 30_000)).toBeCloseTo(2 * width + 2 * MINUTE + 30_000);
  expect([scale.startMs, scale.endMs]).toEqual([0, 9 * HOUR]);
});

test("an axis begins where its session began, and has a length even if nothing took any time", () => {
  const scale = makeTimeScale([span(HOUR, HOUR + 1000)], HOUR, HOUR + 1000);
  expect([scale.at(HOUR + 400), scale.timeAt(400), scale.length]).toEqual([400, HOUR + 400, 1000]);
  expect(makeTimeScale([], 5, 5).length).toBe(1);
  const instants = makeTimeScale([span(0, 0), span(HOUR, HOUR)], 0, HOUR);
  expect(instants.length).toBeCloseTo(35);
  // A span may reach beyond the end, while the page's clock is behind the server's.
  expect(makeTimeScale([span(0, 10), span(2 * HOUR, 3 * HOUR)], 0, HOUR).folds).toMatchObject([
    { startMs: 10, endMs: HOUR },
  ]);
});

test("many folds share a quarter of the axis", () => {
  const spans = Array.from({ length: 21 }, (_, at) => span(at * HOUR, at * HOUR + MINUTE));
  const { folds } = makeTimeScale(spans, 0, 20 * HOUR + MINUTE);
  expect(folds).toHaveLength(20);
  expect(folds[0]!.to - folds[0]!.from).toBeCloseTo((21 * MINUTE * 0.25) / 20);
});

test("the last that passes is found by halves", () => {
  for (const length of [0, 1, 2, 7, 8])
    for (let passing = 0; passing <= length; passing++)
      expect(lastIndex([...Array(length).keys()], (one) => one < passing)).toBe(passing - 1);
});

test("zooming, panning and revealing stay within the axis", () => {
  expect(zoom({ from: 400, to: 600 }, 2, 600, 1000)).toEqual({ from: 200, to: 600 });
  expect(zoom({ from: 500, to: 500 }, 2, 500, 1000)).toEqual({ from: 495, to: 505 });
  expect(zoom({ from: 0, to: 4 }, 0.5, 2, 4)).toEqual({ from: 0, to: 4 });
  expect(zoom({ from: 900, to: 1000 }, 4, 900, 1000)).toEqual({ from: 600, to: 1000 });
  expect(pan({ from: 100, to: 300 }, 50, 1000)).toEqual({ from: 150, to: 350 });
  expect(pan({ from: 0, to: 2000 }, 50, 1000)).toEqual({ from: 0, to: 1000 });
  const view = { from: 100, to: 300 };
  expect(reveal(view, 100, 300, 1000)).toBe(view);
  // The middle of what does not fit is moved to the middle; what is too wide begins at the left.
  expect(reveal(view, 90, 110, 1000)).toEqual({ from: 0, to: 200 });
  expect(reveal(view, 290, 310, 1000)).toEqual({ from: 200, to: 400 });
  expect(reveal(view, 400, 600, 1000)).toEqual({ from: 400, to: 600 });
  expect(reveal(view, 400, 700, 1000)).toEqual({ from: 400, to: 600 });
});

test("an instant takes no row from what begins with it, and there is a row even for nothing", () => {
  expect(packLanes([span(0, 0), span(0, 5), span(5, 6)], 4)).toEqual({ lanes: [0, 0, 0], count: 1 });
  expect(packLanes([], 4)).toEqual({ lanes: [], count: 1 });
  // The last row is busy until the longest of those in it ends.
  expect(packLanes([span(0, 50), span(1, 90), span(2, 10), span(50, 60)], 2)).toEqual({
    lanes: [0, 1, 1, 0],
    count: 2,
  });
});
