import type { ChatState } from "../../host/host.ts";
import type { CallItem, CallState, Item } from "../../transcript/item.ts";
import { cutOffLine, itemLines, reasoningLines } from "../lines/item-lines.ts";
import { BLANK, type Line, line } from "../lines/line.ts";
import { advanceStream, EMPTY_STREAM, finishStream, type MarkdownStream } from "../lines/markdown-stream.ts";

/** How many items are written out when a conversation is opened. */
const ITEMS_MAX = 60;

/**
 * The part of a conversation in the terminal's scrollback, which can no longer change. Each step takes the state of the
 * chat and returns the rows to add: finished items, and the finished part of the streamed answer. An answer that was
 * written while it streamed is not written again when it is recorded.
 */
export class Scrollback {
  /** By id, with the state in which a call was written. */
  readonly #written = new Map<string, CallState | null>();
  #stream: MarkdownStream = EMPTY_STREAM;
  /** The streamed text that `#stream` has seen. */
  #streamed = "";
  /** The streamed text when an answer was recorded: the state may still hold it until the next answer starts. */
  #recorded = "";
  /** Reasoning that was written before it was recorded. */
  #thought = "";

  /** The end of the conversation, as it was when it was opened. */
  open(state: ChatState, columns: number): Line[] {
    const finished = state.items.slice(0, pendingAt(state));
    const skipped = finished.slice(0, -ITEMS_MAX);
    for (const item of skipped) this.#written.set(item.id, stateOf(item));
    const rows = finished.slice(skipped.length).flatMap((item) => this.#add(item, columns));
    return skipped.length === 0
      ? rows
      : [line(`… ${skipped.length} earlier items: /export writes them all to a file`, { dim: true }), ...rows];
  }

  /** Rows to add, and rows of the streamed answer that may still change. */
  step(state: ChatState, columns: number, rowsMax: number): { finished: Line[]; live: readonly Line[] } {
    const finished: Line[] = [];
    for (const item of state.items.slice(0, pendingAt(state))) {
      if (!this.#isNew(item)) continue;
      finished.push(...this.#add(item, columns));
      if (item.kind === "answer") this.#recorded = state.live?.text ?? "";
    }
    const live = this.#streamAnswer(state, columns, rowsMax, finished);
    return { finished, live };
  }

  /** The part of the answer streamed so far, when the person leaves. */
  breakOff(state: ChatState, columns: number): Line[] {
    const text = state.live?.text ?? "";
    if (text === "" || text === this.#recorded || !text.startsWith(this.#streamed)) return [];
    return [...(this.#stream.begun ? [] : [BLANK]), ...finishStream(this.#stream, text, columns), cutOffLine()];
  }

  /** A call written before its outcome was known is written again with it, for example after an interruption. */
  #isNew(item: Item): boolean {
    const before = this.#written.get(item.id);
    if (before === undefined) return true;
    return before !== null && !isFinal(before) && isFinal(stateOf(item)!);
  }

  #add(item: Item, columns: number): Line[] {
    this.#written.set(item.id, stateOf(item));
    if (item.kind === "reasoning" && this.#thought !== "" && this.#thought.includes(item.text.trim())) return [];
    if (item.kind !== "answer") return itemLines(item, columns);
    const { taken } = this.#stream;
    if (taken > item.text.length && this.#streamed.startsWith(item.text)) {
      // Several texts of one message were streamed as one: this one is already written, and the next one follows it.
      this.#streamed = this.#streamed.slice(item.text.length);
      this.#stream = { ...this.#stream, taken: taken - item.text.length };
      return item.incomplete ? [cutOffLine()] : [];
    }
    if (taken === 0 || !item.text.startsWith(this.#streamed.slice(0, taken))) {
      this.#forget();
      return itemLines(item, columns);
    }
    const rest = finishStream(this.#stream, item.text, columns);
    const head = this.#stream.begun ? [] : [BLANK];
    this.#forget();
    return [...head, ...rest, ...(item.incomplete ? [cutOffLine()] : [])];
  }

  #streamAnswer(state: ChatState, columns: number, rowsMax: number, finished: Line[]): readonly Line[] {
    const text = state.live?.text ?? "";
    if (text === "" || text === this.#recorded) return [];
    if (!text.startsWith(this.#streamed)) {
      // The request is retried. The scrollback cannot be changed, but the text can be marked as void.
      if (this.#stream.begun) finished.push(line("… cut off: retrying the request", { dim: true }));
      this.#forget();
    }
    const thought = state.live?.reasoning ?? "";
    if (this.#streamed === "" && thought.trim() !== "" && this.#thought === "") {
      this.#thought = thought;
      const rows = reasoningLines(thought, columns);
      if (rows.length > 0) finished.push(BLANK, ...rows);
    }
    this.#streamed = text;
    const begun = this.#stream.begun;
    const step = advanceStream(this.#stream, text, columns, rowsMax);
    this.#stream = step.stream;
    if (step.finished.length > 0) finished.push(...(begun ? [] : [BLANK]), ...step.finished);
    return step.stream.begun || step.live.length === 0 ? step.live : [BLANK, ...step.live];
  }

  #forget(): void {
    this.#stream = EMPTY_STREAM;
    this.#streamed = "";
    this.#thought = "";
  }
}

/** The first item that may still change: a call of the last turn. Later items wait for it, to keep the order. */
function pendingAt(state: ChatState): number {
  const working = state.status === "running" || state.status === "waiting";
  const prompt = state.items.findLastIndex(({ kind }) => kind === "prompt");
  const at = state.items.findIndex((item, i) => i > prompt && item.kind === "call" && mayChange(item, working));
  return at === -1 ? state.items.length : at;
}

/**
 * While a turn is running, an unknown outcome is about to be recorded. After it ends, only a tool that has not stopped
 * yet can still change.
 */
function mayChange({ state }: CallItem, working: boolean): boolean {
  if (state === "running") return true;
  return working && (state === "open" || state === "waiting" || state === "unknown");
}

function stateOf(item: Item): CallState | null {
  return item.kind === "call" ? item.state : null;
}

function isFinal(state: CallState): boolean {
  return state === "done" || state === "failed" || state === "denied" || state === "not-run";
}

/** Items that are not in the scrollback yet, because they or an earlier call may still change. */
export function pendingItems(state: ChatState): readonly Item[] {
  return state.items.slice(pendingAt(state));
}
