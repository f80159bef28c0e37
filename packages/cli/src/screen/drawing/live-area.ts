import type { ChatState } from "../../host/host.ts";
import { plain, plainLine } from "../../terminal/index.ts";
import type { CallItem, CallState, Item } from "../../transcript/item.ts";
import { labelled } from "../input/chips.ts";
import { cursorAt, type Editor, rowsOf } from "../input/editor.ts";
import { matchCommands } from "../input/slash-commands.ts";
import { callLine, outputTail } from "../lines/item-lines.ts";
import { callSummary, excerpt } from "../lines/labels.ts";
import { BLANK, cut, type Line, line, type Span, span, untab, wrap } from "../lines/line.ts";
import { type StatusFacts, spinner, statusLine } from "../lines/status-line.ts";
import { choiceLine, choiceLines, choiceWords, type Panel } from "../panels/panel.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** The live part of the screen, and the position of the terminal's cursor in it. */
export interface LiveArea {
  readonly lines: readonly Line[];
  readonly cursor: { readonly x: number; readonly y: number } | null;
}

export interface LiveContent {
  readonly state: ChatState;
  /** Rows of the streamed answer that may still change. */
  readonly answer: readonly Line[];
  /** Items from the first unfinished call on. */
  readonly pending: readonly Item[];
  readonly editor: Editor;
  /** The files that the mention at the cursor could mean. */
  readonly candidates: readonly string[];
  readonly panel: Panel | null;
  /** The selected choice in the panel; negative if none (WRITING, APPEARING). */
  readonly selected: number;
  readonly status: StatusFacts;
  readonly now: number;
}

const PROMPT = "❯ ";
const OUTPUT_ROWS = 3;
const SUGGESTIONS_MAX = 6;
/**
 * A terminal that gets narrower breaks wider rows into an unknown number of rows: keep redrawn rows short where
 * possible.
 */
const RULE_COLUMNS = 60;
/** A question that would get fewer rows has its choices in short form. */
const QUESTION_ROWS_MIN = 5;
/** From this height on, a long question leaves room for the queue. */
const ROOMY_ROWS = 18;

/** Longer rows are hard to read, even on a wide screen. */
export function textColumns(columns: number): number {
  return Math.min(columns, 120);
}

/** How many columns the editor has for its text. */
export function editorColumns(columns: number): number {
  return Math.max(1, columns - PROMPT.length - 1);
}

/** How many rows of a streamed answer may stay unfinished. */
export function answerRowsMax({ rows }: Size): number {
  return Math.max(3, rows - 8);
}

/**
 * How many rows may be redrawn. Not the last one, or the terminal scrolls. Nor the first one, except in a very low
 * window: tmux keeps what is erased from there on in its scrollback.
 */
export function liveRowsMax({ rows }: Size): number {
  return Math.max(4, Math.min(5, rows - 1), rows - 2);
}

/** Lays out the live part; less urgent parts give way. */
export function layOutLiveArea(shown: LiveContent, size: Size): LiveArea {
  const { columns } = size;
  const height = liveRowsMax(size);
  const status = statusLine(shown.state, shown.status, columns);
  const editor = editorPart(shown, columns, Math.max(1, Math.min(10, Math.floor(height / 3))));
  // The panel of an interruption shows the queue itself. A question does not, and a prompt queued meanwhile must not
  // seem lost.
  const isAsking = shown.panel !== null && shown.state.asks.length > 0;
  const queue = shown.panel === null || isAsking ? queuePart(shown.state, columns, !isAsking) : [];
  const hints = suggestionPart(shown, columns).slice(0, Math.max(0, height - editor.lines.length - 3));
  let left = height - editor.lines.length - 1 - hints.length - 1;
  const panel = panelPart(shown, columns, Math.max(0, height >= ROOMY_ROWS ? left - queue.length : left));
  left -= panel.length;
  const queued = queue.slice(0, Math.max(0, left));
  left -= queued.length;
  const work = workPart(shown, columns).slice(0, Math.max(0, left - (shown.answer.length > 0 ? 2 : 0)));
  left -= work.length;
  const answer = left > 0 ? answerPart(shown, columns).slice(-left) : [];
  const above = [...answer, ...work, ...panel, ...queued];
  const rule = line("─".repeat(Math.min(columns, RULE_COLUMNS)), { colour: "grey" });
  const lines = [...above, rule, ...editor.lines, ...hints, status].slice(-height);
  const dropped = above.length + 1 + editor.lines.length + hints.length + 1 - lines.length;
  const { x, y } = editor.cursor;
  return { lines, cursor: drawsCursor(shown) ? null : { x, y: above.length + 1 + y - dropped } };
}

/**
 * While an answer streams and the editor is empty, the cursor is drawn as text, and the terminal's own one stands below
 * everything: a terminal that gets lower throws away the rows below it, and the next picture would then erase too many
 * above.
 */
function drawsCursor({ state, panel, editor }: LiveContent): boolean {
  return state.status === "running" && panel === null && editor.text === "";
}

function answerPart({ state, answer }: LiveContent, columns: number): readonly Line[] {
  if (answer.length > 0) return answer;
  const thought = state.live?.reasoning ?? "";
  if (thought.trim() === "" || state.live?.text !== "") return [];
  const rows = untab(plain(thought.slice(-2_000)))
    .trim()
    .split("\n")
    .flatMap((one) => wrap(line(one, { dim: true, italic: true }), columns - 2));
  return [BLANK, line("∴ thinking", { dim: true }), ...rows.slice(-4).map((row) => [span("  "), ...row])];
}

/** Calls whose input is being streamed, that are waiting or running, with the end of their output. */
function workPart({ state, pending, status }: LiveContent, columns: number): Line[] {
  const rows: Line[] = [];
  const recorded = new Set(pending.map((item) => (item.kind === "call" ? item.call : "")));
  for (const { id, name, input } of state.live?.calls ?? []) {
    if (recorded.has(id)) continue;
    rows.push(
      cut(
        [
          span("◌ ", { dim: true }),
          span(plainLine(name), { bold: true }),
          span(` ${excerpt(input, columns)}`, { dim: true }),
        ],
        columns,
      ),
    );
  }
  for (const item of pending) {
    // The panel shows the call that needs an answer.
    if (item.kind !== "call" || item.call === state.asks[0]?.call) continue;
    const shown = stateNow(item, state);
    const mark = shown === "running" ? spinner(status.frame) : undefined;
    rows.push(callLine(item.name, callSummary(item), shown, columns, mark));
    rows.push(...outputTail(state.outputs[item.call] ?? "", columns, OUTPUT_ROWS));
  }
  return rows.length === 0 ? [] : [BLANK, ...rows];
}

/**
 * While a turn is running, an unknown outcome is about to be recorded; once the turn is interrupted, it never will be.
 * The answer to one call is recorded together with those to its neighbours.
 */
function stateNow({ call, state }: CallItem, { status, asks }: ChatState): CallState | "answered" {
  if (status === "interrupted") return state === "running" ? "unknown" : state;
  if (state === "waiting" && status === "waiting" && !asks.some((ask) => ask.call === call)) return "answered";
  return state === "unknown" ? "running" : state;
}

function panelPart({ panel, selected, now }: LiveContent, columns: number, rowsMax: number): Line[] {
  if (panel === null) return [];
  const all = choiceLines(panel, selected, columns);
  const isCramped = panel.hasShortChoices === true && rowsMax - all.length - 1 < QUESTION_ROWS_MIN;
  const choices = isCramped ? choiceWords(panel, selected, columns) : all;
  if (rowsMax < choices.length + 2) {
    // In a low window, what the panel is about comes before the choices: nobody should choose blindly.
    const about = panel.lines(columns, Math.max(2, rowsMax - 1), now).map((row) => cut(row, columns));
    if (rowsMax < 2) return about.slice(0, 2).slice(-1);
    return [...about.slice(0, Math.max(2, rowsMax - 1)).slice(1 - rowsMax), choiceLine(panel, selected, columns)];
  }
  const about = panel.lines(columns, Math.max(2, rowsMax - choices.length - 1), now);
  return [BLANK, ...about.map((row) => cut(row, columns)), ...choices].slice(-Math.max(1, rowsMax));
}

/** `canTakeBack`: the arrow keys are not used for something else. */
function queuePart({ queue }: ChatState, columns: number, canTakeBack: boolean): Line[] {
  if (queue.length === 0) return [];
  const shown = queue.slice(0, 3).map(({ text }) => line(`  queued: ${excerpt(text, columns - 12)}`, { dim: true }));
  const more = queue.length > 3 ? [line(`  … and ${queue.length - 3} more`, { dim: true })] : [];
  const hint = canTakeBack ? [line("  ↑ edits the last one", { dim: true })] : [];
  const rows = [...shown, ...more, ...hint];
  return [BLANK, ...rows.map((row) => cut(row, columns))];
}

function editorPart(
  content: LiveContent,
  columns: number,
  rowsMax: number,
): { lines: Line[]; cursor: { x: number; y: number } } {
  const { editor, state, panel } = content;
  const room = editorColumns(columns);
  const rows = rowsOf(editor.text, room, editor.chips);
  const at = cursorAt(rows, editor.cursor, room, editor.chips);
  if (at.row >= rows.length) rows.push({ start: editor.text.length, text: "" });
  const first = Math.max(0, Math.min(at.row - Math.floor(rowsMax / 2), rows.length - rowsMax));
  const shown = rows.slice(first, first + rowsMax);
  const lead = (i: number): Span => (first + i === 0 ? span(PROMPT, { bold: true, colour: "cyan" }) : span("  "));
  const usual =
    state.status === "running" || state.isCompacting
      ? "type the next prompt: it will be queued"
      : "type a prompt, or /help";
  const empty = panel?.placeholder ?? usual;
  const marked = drawsCursor(content) ? 1 : 0;
  const placeholder = [span(empty.slice(0, marked), { inverse: true }), span(empty.slice(marked), { dim: true })];
  const lines = shown.map(
    (row, i): Line => [
      lead(i),
      ...(editor.text === "" ? placeholder : [span(plain(labelled(row.text, editor.chips)))]),
    ],
  );
  return {
    lines: lines.map((row) => cut(row, columns)),
    cursor: { x: PROMPT.length + at.column, y: at.row - first },
  };
}

function suggestionPart({ editor, candidates }: LiveContent, columns: number): Line[] {
  if (candidates.length > 0) {
    const rows = candidates.slice(0, SUGGESTIONS_MAX).map((path) => line(`  ${plainLine(path)}`, { colour: "cyan" }));
    const left = candidates.length - rows.length;
    const more = left > 0 ? [line(`  … and ${left} more`, { dim: true })] : [];
    return [...rows, ...more].map((row) => cut(row, columns));
  }
  const found = matchCommands(editor.text);
  if (found.length === 0 || (found.length === 1 && `/${found[0]!.name}` === editor.text)) return [];
  return found
    .slice(0, SUGGESTIONS_MAX)
    .map(({ name, argument, does }) =>
      cut(
        [
          span(`  /${name}${argument === "" ? "" : ` ${argument}`}`.padEnd(20), { colour: "cyan" }),
          span(does, { dim: true }),
        ],
        columns,
      ),
    );
}
