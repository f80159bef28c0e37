import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/Icon.tsx";
import type { Detail, History } from "../state/read-timeline.ts";
import { countWords } from "../text/durations.ts";
import { visible } from "../text/visible.ts";
import { drawTimeline, type Palette, ROWS, rowTops } from "./draw.ts";
import { type Bar, groupMarks, layOutDetail, layOutTimeline, type PlacedMark, pickBar } from "./layout.ts";
import { pan, reveal, type TimeScale, type Viewport, zoom } from "./time-scale.ts";
import { barWords, MARK_WORDS, markWords } from "./words.ts";

/** Where a click on the timeline leads: a message, a call, or else a turn and a time. */
export interface Place {
  readonly message?: string;
  readonly call?: string;
  readonly turn: number | null;
  readonly atMs: number;
}

export type TimelineCommand =
  | "zoom-in"
  | "zoom-out"
  | "zoom-all"
  | "pan-left"
  | "pan-right"
  | "next-mark"
  | "previous-mark";

interface Props {
  readonly history: History;
  /** The bars of a part of it, where the whole has them merged. */
  readonly detail: Detail | null;
  /** Reports the part that is visible. */
  readonly onView: (fromMs: number, toMs: number) => void;
  /** Draws what the transcript shows, behind the bars. */
  readonly band: (place: { readonly scale: TimeScale; readonly view: Viewport; readonly height: number }) => VNode;
  /** Changes when the theme does. */
  readonly theme: string;
  readonly onGo: (place: Place) => void;
  /** Receives the function that carries out commands from the keyboard. */
  readonly commands: { current: ((command: TimelineCommand) => void) | null };
}

const PALETTE = [
  ...["ground", "ink", "faint", "grid", "on-bar", "turn", "turn-edge", "turn-live", "turn-live-edge"],
  ...["turn-open", "turn-open-edge", "turn-cut", "turn-cut-edge", "asked", "model"],
  ...["tool", "tool-live", "tool-failed", "tool-unknown", "tool-idle"],
];

export function Timeline({ history, detail, onView, band, theme, onGo, commands }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [nowMs, setNow] = useState(() => Date.now());
  const isLive = history.turns.some(({ outcome, endMs }) => outcome === "running" && endMs === null);
  const whole = useMemo(() => layOutTimeline(history, nowMs), [history, nowMs]);
  const length = whole.scale.length;
  const [chosen, setChosen] = useState<Viewport | null>(null);
  const view = chosen && chosen.to <= length ? chosen : { from: 0, to: length };
  const [fromMs, toMs] = [whole.scale.timeAt(view.from), whole.scale.timeAt(view.to)];
  const isDetailed = chosen !== null && detail !== null && detail.fromMs <= fromMs && toMs <= detail.toMs;
  const layout = useMemo(() => (isDetailed ? layOutDetail(whole, detail.history) : whole), [whole, detail, isDetailed]);
  useEffect(() => onView(fromMs, toMs), [fromMs, toMs, history.isMerged]);
  const [hover, setHover] = useState<{ readonly bar: Bar; readonly x: number } | null>(null);
  const [markAt, setMarkAt] = useState(-1);
  const { tops, heights, height } = rowTops(layout);

  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [isLive]);

  useLayoutEffect(() => {
    const element = box.current!;
    const measure = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    measure.observe(element);
    return () => measure.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = canvas.current!;
    if (width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
    const context = element.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawTimeline(context, {
      layout,
      view,
      width,
      palette: paletteOf(element),
      hover: hover?.bar ?? null,
      offsetMs: -new Date(layout.scale.endMs).getTimezoneOffset() * 60_000,
    });
  }, [layout, view.from, view.to, width, height, hover, theme]);

  const toPosition = (x: number): number => view.from + (x / Math.max(1, width)) * (view.to - view.from);
  const change = (next: Viewport): void => setChosen(next.from <= 0 && next.to >= length ? null : next);
  const middle = (view.from + view.to) / 2;
  const groups = groupMarks(layout.marks, view, ((view.to - view.from) / Math.max(1, width)) * 18);

  const goToMark = (step: 1 | -1): void => {
    if (layout.marks.length === 0) return;
    const next =
      markAt < 0
        ? step > 0
          ? 0
          : layout.marks.length - 1
        : (markAt + step + layout.marks.length) % layout.marks.length;
    const { mark, at } = layout.marks[next]!;
    setMarkAt(next);
    change(reveal(view, at, at, length));
    onGo({ turn: mark.turn, atMs: mark.atMs });
  };
  commands.current = (command) => {
    if (command === "zoom-in") change(zoom(view, 0.6, middle, length));
    else if (command === "zoom-out") change(zoom(view, 1 / 0.6, middle, length));
    else if (command === "zoom-all") setChosen(null);
    else if (command === "pan-left") change(pan(view, (view.from - view.to) / 4, length));
    else if (command === "pan-right") change(pan(view, (view.to - view.from) / 4, length));
    else goToMark(command === "next-mark" ? 1 : -1);
  };

  // A wheel listener that prevents scrolling cannot be passive, and those that Preact adds are.
  const latest = useRef({ view, length, change, toPosition });
  latest.current = { view, length, change, toPosition };
  useEffect(() => {
    const element = canvas.current!;
    const onWheel = (event: WheelEvent): void => {
      const { view: seen, length: whole, change: set, toPosition: position } = latest.current;
      const isPan = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      // A plain wheel scrolls the page, unless one has zoomed in before.
      if (!event.ctrlKey && !event.metaKey && !isPan) return;
      event.preventDefault();
      if (isPan) set(pan(seen, ((event.deltaX || event.deltaY) / 800) * (seen.to - seen.from), whole));
      else set(zoom(seen, Math.exp(event.deltaY / 300), position(event.offsetX), whole));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);

  const drag = useRef<{ x: number; view: Viewport; moved: boolean } | null>(null);
  const barAt = (event: PointerEvent): Bar | null => {
    const row = tops.findIndex((top, index) => event.offsetY >= top - 2 && event.offsetY <= top + heights[index]! + 2);
    return pickBar(layout.rows[row], toPosition(event.offsetX), ((view.to - view.from) / Math.max(1, width)) * 4);
  };
  const onMove = (event: PointerEvent): void => {
    const from = drag.current;
    if (from) {
      const by = event.offsetX - from.x;
      if (Math.abs(by) > 4) from.moved = true;
      if (from.moved) change(pan(from.view, (-by / Math.max(1, width)) * (from.view.to - from.view.from), length));
      return;
    }
    const bar = barAt(event);
    setHover(bar ? { bar, x: event.offsetX } : null);
  };
  const onUp = (event: PointerEvent): void => {
    const from = drag.current;
    drag.current = null;
    if (!from || from.moved) return;
    const bar = barAt(event);
    if (bar) onGo(placeOf(bar));
    else onGo({ turn: null, atMs: layout.scale.timeAt(toPosition(event.offsetX)) });
  };

  const words = hover && barWords(hover.bar, nowMs);
  const counts = `${countWords(history.turnsInAll, "turn")}, ${countWords(countOf(history.models), "model call")}, ${countWords(countOf(history.tools), "tool call")}, ${countWords(countOf(history.marks), "interruption or other event", "interruptions and other events")}`;
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="timeline-box" ref={box}>
        {band({ scale: layout.scale, view, height })}
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Timeline: ${counts}. Use the buttons for each event, or the keys plus, minus, h and l.`}
          onPointerDown={(event) => {
            (event.currentTarget as Element).setPointerCapture(event.pointerId);
            drag.current = { x: event.offsetX, view, moved: false };
          }}
          onPointerMove={onMove}
          onPointerUp={onUp}
          onPointerLeave={() => setHover(null)}
          onPointerCancel={() => {
            drag.current = null;
          }}
        />
        <div class="timeline-marks">
          {groups.map(({ at, worst, marks, count }) => (
            <button
              key={`${worst.kind}${worst.atMs}`}
              type="button"
              class={`mark mark-${worst.kind}${(at - view.from) / (view.to - view.from) > 0.95 ? " is-last" : ""}`}
              style={{
                left: `${((at - view.from) / (view.to - view.from)) * 100}%`,
                height: `${height - ROWS.axis}px`,
              }}
              title={marksWords(marks).join("\n")}
              aria-label={marksWords(marks).join("; ")}
              onClick={() => onGo({ turn: worst.turn, atMs: worst.atMs })}
            >
              <span class="mark-flag">
                <Icon name={MARK_ICONS[worst.kind]} />
                {count > 1 ? <span class="mark-count">{count > 99 ? "99+" : count}</span> : null}
              </span>
            </button>
          ))}
        </div>
        {words && hover ? (
          <div
            class={`timeline-tip${(words.lines ?? []).length > 0 ? " is-below" : ""}`}
            style={{ left: `${Math.min(Math.max(0, hover.x - 130), Math.max(0, width - 270))}px` }}
          >
            <strong>{words.title}</strong>
            <span>{words.detail}</span>
            {words.lines && words.lines.length > 0 ? (
              <span class="timeline-steps">{words.lines.map(visible).join("\n")}</span>
            ) : null}
          </div>
        ) : null}
      </div>
      <div class="timeline-foot">
        <Legend history={history} />
        <div class="timeline-buttons" role="group" aria-label="Zoom">
          <button
            type="button"
            class="icon-button"
            title="Zoom out (-)"
            aria-label="Zoom out"
            onClick={() => commands.current?.("zoom-out")}
          >
            <Icon name="minus" />
          </button>
          <button
            type="button"
            class="icon-button"
            title="Show all (0)"
            aria-label="Show the whole timeline"
            onClick={() => commands.current?.("zoom-all")}
          >
            <Icon name="fit" />
          </button>
          <button
            type="button"
            class="icon-button"
            title="Zoom in (+)"
            aria-label="Zoom in"
            onClick={() => commands.current?.("zoom-in")}
          >
            <Icon name="plus" />
          </button>
        </div>
      </div>
    </section>
  );
}

const MARK_ICONS = {
  died: "cross",
  signal: "power",
  stopped: "stop",
  "not-run": "skip",
  failed: "warning",
  waiting: "hand",
  resumed: "play",
  replaced: "fold",
} as const;

const MARKS_SHOWN_MAX = 12;

function marksWords(marks: readonly PlacedMark[]): string[] {
  const words = marks.slice(0, MARKS_SHOWN_MAX).map(({ mark }) => markWords(mark));
  return marks.length > MARKS_SHOWN_MAX ? [...words, `and ${marks.length - MARKS_SHOWN_MAX} more`] : words;
}

function countOf(spans: readonly { readonly count: number }[]): number {
  return spans.reduce((sum, { count }) => sum + count, 0);
}

/** Only what this timeline shows. */
function Legend({ history: { models, tools, marks } }: { readonly history: History }) {
  const kinds = [...new Set(marks.map(({ kind }) => kind))].filter((kind) => kind !== "not-run");
  const outcomes = new Set(tools.map(({ outcome }) => outcome));
  const stepOutcomes = new Set(tools.flatMap(({ steps }) => steps.map(({ outcome }) => outcome)));
  return (
    <ul class="legend" aria-label="Legend">
      {models.some(({ firstMs, endMs, message }) => firstMs !== null || (endMs !== null && message === null)) ? (
        <li>
          <span class="swatch swatch-asked" />
          waiting for the model
        </li>
      ) : null}
      <li>
        <span class="swatch swatch-model" />
        model
      </li>
      {tools.length > 0 ? (
        <li>
          <span class="swatch swatch-tool" />
          tool
        </li>
      ) : null}
      {stepOutcomes.size > 0 ? (
        <li>
          <span class="swatch swatch-steps" />
          tool with steps
        </li>
      ) : null}
      {outcomes.has("failed") || stepOutcomes.has("failed") ? (
        <li>
          <span class="swatch swatch-failed" />
          {outcomes.has("failed") ? "tool failed" : "step failed"}
        </li>
      ) : null}
      {outcomes.has("unknown") || stepOutcomes.has("unknown") ? (
        <li>
          <span class="swatch swatch-unknown" />
          outcome unknown
        </li>
      ) : null}
      {outcomes.has("not-run") ? (
        <li>
          <span class="swatch swatch-not-run" />
          never started
        </li>
      ) : null}
      {kinds.map((kind) => (
        <li key={kind} class={`legend-${kind}`}>
          <Icon name={MARK_ICONS[kind]} />
          {MARK_WORDS[kind].toLowerCase()}
        </li>
      ))}
    </ul>
  );
}

function placeOf({ span }: Bar): Place {
  if (span.kind === "model" && span.message !== null)
    return { message: span.message, turn: span.turn, atMs: span.startMs };
  if (span.kind === "tool") return { call: span.call, turn: span.turn, atMs: span.startMs };
  return { turn: span.turn, atMs: span.startMs };
}

function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  return Object.fromEntries(PALETTE.map((name) => [name, style.getPropertyValue(`--tl-${name}`).trim()]));
}
