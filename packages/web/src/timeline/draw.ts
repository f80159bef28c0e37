import type { ToolSpan, TurnSpan } from "../state/read-timeline.ts";
import { durationWords } from "../text/durations.ts";
import { type Bar, type PlacedStep, type TimelineLayout, visibleBars } from "./layout.ts";
import { ticksFor } from "./ticks.ts";
import type { Viewport } from "./time-scale.ts";

/** The rows of the timeline, in CSS pixels. */
export const ROWS = { axis: 22, turn: 26, model: 20, tool: 16, steps: 8, gap: 5, marks: 20 } as const;

/** Where each row is, from the top. Row 0: turns; 1: model; 2 and more: tools. */
export function rowTops({ withSteps }: Pick<TimelineLayout, "withSteps">): {
  readonly tops: number[];
  readonly heights: number[];
  readonly height: number;
} {
  const tops: number[] = [];
  const heights: number[] = [];
  let top: number = ROWS.marks;
  for (const [row, hasSteps] of withSteps.entries()) {
    const tool = ROWS.tool + (hasSteps ? ROWS.steps : 0);
    const height = row === 0 ? ROWS.turn : row === 1 ? ROWS.model : tool;
    tops.push(top);
    heights.push(height);
    top += height + (row < 2 ? ROWS.gap + 2 : 3);
  }
  return { tops, heights, height: top + ROWS.axis };
}

/** The colours of the theme, by the names of its custom properties without `--tl-`. */
export type Palette = Readonly<Record<string, string>>;

export interface Scene {
  readonly layout: TimelineLayout;
  readonly view: Viewport;
  readonly width: number;
  readonly palette: Palette;
  readonly hover: Bar | null;
  /** Of local time from UTC. */
  readonly offsetMs: number;
}

const BAR_MIN = 2;
/** A narrower bar shows no steps. */
const STEPS_ROOM_MIN = 12;

/** Draws the timeline on a canvas whose units are CSS pixels. */
export function drawTimeline(context: CanvasRenderingContext2D, scene: Scene): void {
  const { layout, view, width } = scene;
  const { tops, heights, height } = rowTops(layout);
  const x = (position: number): number => ((position - view.from) / (view.to - view.from)) * width;
  context.clearRect(0, 0, width, height);
  const bottom = height - ROWS.axis;

  drawAxis(context, scene, x, bottom);
  drawFolds(context, scene, x, bottom);
  for (const [row, bars] of layout.rows.entries()) {
    const [top, tall] = [tops[row]!, heights[row]!];
    // Neighbours that are too narrow to tell apart are drawn once.
    let drawnTo = Number.NEGATIVE_INFINITY;
    for (const bar of visibleBars(bars, view)) {
      const from = x(bar.from);
      const to = Math.max(x(bar.to), from + BAR_MIN);
      if (to - drawnTo < 0.75 && bar.kind !== "turn") continue;
      drawnTo = to;
      drawBar(context, bar, { from, to, top, tall, first: bar.kind === "model" ? x(bar.first) : from }, scene, x);
    }
  }
}

interface Box {
  readonly from: number;
  readonly to: number;
  readonly top: number;
  readonly tall: number;
  readonly first: number;
}

function drawBar(
  context: CanvasRenderingContext2D,
  bar: Bar,
  box: Box,
  scene: Scene,
  x: (position: number) => number,
): void {
  const { palette } = scene;
  const from = Math.max(box.from, -8);
  const to = Math.min(box.to, scene.width + 8);
  const { top, tall } = box;
  const shape = (left: number, right: number, radius: number): void => {
    context.beginPath();
    context.roundRect(left, top, Math.max(BAR_MIN, right - left), tall, Math.min(radius, (right - left) / 2));
  };
  if (bar.kind === "turn") {
    shape(from, Math.max(from + 1, to - 1), 5);
    context.fillStyle = palette[turnColour(bar.span)]!;
    context.fill();
    context.fillStyle = palette[`${turnColour(bar.span)}-edge`] ?? palette["turn-edge"]!;
    context.fillRect(from, top, Math.min(3, to - from), tall);
    label(
      context,
      bar.span.count > 1
        ? `${bar.span.turn}–${bar.span.turn + bar.span.count - 1}`
        : `${bar.span.turn}  ${bar.span.text}`,
      from + 9,
      to - 4,
      top + tall / 2,
      palette["ink"]!,
      "600 11.5px",
    );
  } else if (bar.kind === "model") {
    shape(from, to, 3);
    context.fillStyle = palette["asked"]!;
    context.fill();
    const first = Math.min(to, Math.max(from, box.first));
    if (bar.span.message !== null || bar.span.firstMs !== null) {
      shape(first, to, 3);
      context.fillStyle = palette["model"]!;
      context.fill();
    }
    if (bar.span.message === null && bar.span.endMs !== null && bar.span.count === 1)
      tear(context, to, top, tall, palette["ground"]!);
    label(
      context,
      shortModel(bar.span.model),
      Math.max(first, from) + 6,
      to - 3,
      top + tall / 2,
      palette["on-bar"]!,
      "500 11px",
    );
  } else {
    const colour = palette[toolColour(bar.span.outcome)]!;
    shape(from, to, 3);
    if (bar.span.outcome === "not-run" || bar.span.outcome === "waiting") {
      context.strokeStyle = colour;
      context.setLineDash([3, 2]);
      context.stroke();
      context.setLineDash([]);
    } else {
      context.fillStyle = colour;
      context.fill();
    }
    if (bar.span.outcome === "unknown") hatch(context, from, to, top, tall, palette["ground"]!);
    const ink = bar.span.outcome === "not-run" || bar.span.outcome === "waiting" ? palette["ink"]! : palette["on-bar"]!;
    const hasSteps = bar.steps.length > 0 && to - from >= STEPS_ROOM_MIN;
    if (hasSteps) drawSteps(context, bar.steps, { from, to, top, tall }, palette, x);
    const { count, name, about } = bar.span;
    label(
      context,
      count > 1 ? `${count} calls` : about === "" ? name : `${name} ${about}`,
      from + 5,
      to - 3,
      top + (hasSteps ? tall - ROWS.steps : tall) / 2,
      ink,
      "500 10.5px",
    );
  }
  if (scene.hover === bar) {
    shape(from, to, 4);
    context.strokeStyle = palette["ink"]!;
    context.lineWidth = 1.5;
    context.stroke();
    context.lineWidth = 1;
  }
}

/** A strip along the bottom of the tool's bar. What finished is below what did not. */
function drawSteps(
  context: CanvasRenderingContext2D,
  steps: readonly PlacedStep[],
  { from, to, top, tall }: Omit<Box, "first">,
  palette: Palette,
  x: (position: number) => number,
): void {
  const above = top + tall - ROWS.steps;
  context.fillStyle = palette["ground"]!;
  context.fillRect(from + 1, above, to - from - 2, ROWS.steps - 1);
  for (const { outcome, ...step } of steps.toSorted(
    (a, b) => Number(b.outcome === "done") - Number(a.outcome === "done"),
  )) {
    const left = Math.round(Math.min(Math.max(x(step.from), from + 1), to - 1 - BAR_MIN));
    // Steps that follow one another are told apart.
    const right = Math.round(Math.min(Math.max(x(step.to) - 1, left + BAR_MIN), to - 1));
    context.fillStyle = palette[toolColour(outcome)]!;
    context.fillRect(left, above + 1, right - left, ROWS.steps - 3);
  }
}

function turnColour({ outcome }: TurnSpan): string {
  if (outcome === "completed") return "turn";
  if (outcome === "running") return "turn-live";
  return outcome === "left" || outcome === "waiting" ? "turn-open" : "turn-cut";
}

export function toolColour(outcome: ToolSpan["outcome"]): string {
  switch (outcome) {
    case "done":
      return "tool";
    case "running":
      return "tool-live";
    case "failed":
    case "denied":
      return "tool-failed";
    case "unknown":
      return "tool-unknown";
    case "not-run":
    case "waiting":
      return "tool-idle";
  }
}

function shortModel(model: string | null): string {
  return model === null ? "" : model.slice(model.lastIndexOf("/") + 1);
}

function label(
  context: CanvasRenderingContext2D,
  text: string,
  from: number,
  to: number,
  middle: number,
  ink: string,
  font: string,
): void {
  const room = to - Math.max(from, 4);
  if (room < 24 || text === "") return;
  context.font = `${font} ${FONT}`;
  context.fillStyle = ink;
  context.textBaseline = "middle";
  context.fillText(fitText(context, text.slice(0, 300), room), Math.max(from, 4), middle + 0.5);
}

function fitText(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? "" : `${text.slice(0, low).trimEnd()}…`;
}

/** The jagged end of something that was cut off. */
function tear(context: CanvasRenderingContext2D, to: number, top: number, tall: number, ground: string): void {
  context.fillStyle = ground;
  context.beginPath();
  context.moveTo(to + 1, top);
  for (let step = 0; step <= 4; step++) context.lineTo(to - (step % 2 === 0 ? 0 : 4), top + (tall * step) / 4);
  context.lineTo(to + 1, top + tall);
  context.fill();
}

function hatch(
  context: CanvasRenderingContext2D,
  from: number,
  to: number,
  top: number,
  tall: number,
  ground: string,
): void {
  context.save();
  context.beginPath();
  context.roundRect(from, top, Math.max(BAR_MIN, to - from), tall, 3);
  context.clip();
  context.strokeStyle = ground;
  context.globalAlpha = 0.45;
  context.lineWidth = 2;
  context.beginPath();
  for (let left = from - tall; left < to; left += 7) {
    context.moveTo(left, top + tall);
    context.lineTo(left + tall, top);
  }
  context.stroke();
  context.restore();
  context.lineWidth = 1;
}

function drawAxis(
  context: CanvasRenderingContext2D,
  { layout, view, width, palette, offsetMs }: Scene,
  x: (position: number) => number,
  bottom: number,
): void {
  context.font = `11px ${FONT}`;
  context.textBaseline = "middle";
  let drawnTo = 0;
  for (const { at, label: words } of ticksFor(layout.scale, view, width / 110, offsetMs)) {
    const left = Math.round(x(at)) + 0.5;
    context.strokeStyle = palette["grid"]!;
    context.beginPath();
    context.moveTo(left, ROWS.marks - 4);
    context.lineTo(left, bottom + 4);
    context.stroke();
    if (left < drawnTo || left + 60 > width) continue;
    context.fillStyle = palette["faint"]!;
    context.fillText(words, left + 4, bottom + 12);
    drawnTo = left + 4 + context.measureText(words).width + 10;
  }
}

function drawFolds(
  context: CanvasRenderingContext2D,
  { layout, palette, width }: Scene,
  x: (position: number) => number,
  bottom: number,
): void {
  for (const fold of layout.scale.folds) {
    const [from, to] = [x(fold.from), x(fold.to)];
    if (to < 0 || from > width || to - from < 2) continue;
    context.save();
    context.beginPath();
    context.rect(from, ROWS.marks - 4, to - from, bottom - ROWS.marks + 8);
    context.clip();
    context.fillStyle = palette["ground"]!;
    context.fillRect(from, ROWS.marks - 4, to - from, bottom - ROWS.marks + 8);
    context.strokeStyle = palette["grid"]!;
    for (let left = from - 200; left < to; left += 6) {
      context.beginPath();
      context.moveTo(left, bottom + 4);
      context.lineTo(left + (bottom - ROWS.marks + 8) / 2, ROWS.marks - 4);
      context.stroke();
    }
    const words = durationWords(fold.endMs - fold.startMs);
    context.font = `500 10.5px ${FONT}`;
    const room = context.measureText(words).width;
    context.translate((from + to) / 2, (ROWS.marks + bottom) / 2);
    const isWide = to - from > room + 10;
    if (!isWide) context.rotate(-Math.PI / 2);
    if (isWide || (to - from > 12 && bottom - ROWS.marks > room + 12)) {
      context.fillStyle = palette["ground"]!;
      context.fillRect(-room / 2 - 4, -8, room + 8, 16);
      context.fillStyle = palette["faint"]!;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(words, 0, 0.5);
    }
    context.restore();
    context.textAlign = "left";
  }
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
