import type { ChatState } from "../../host/host.ts";
import type { CallItem, CallState, Item } from "../../transcript/item.ts";
import { cutOffLine, itemLines, reasoningLines } from "../lines/item-lines.ts";
import { BLANK, type Line, line } from "../lines/line.ts";
import { advanceStream, EMPTY_STREAM, finishStream, type MarkdownStream } from "../lines/markdown-stream.ts";

/** So many items of a conversation are written out when it is opened; the rest is a command away. */
const ITEMS_MAX = 60;

/**
 * What of a conversation stands in the terminal's scrollback, where nothing can be changed any more. Each step takes
 * the state of the chat and answers the rows to add: items that are finished, and the finished part of the
 * answer that is being streamed. An answer that was written out while it was streamed is not written again when it is
 * recorded.
 */
export class Scrollback {
  /** By id, with the state that a call was written out in. */
  readonly #written = new Map<string, CallState | null>();
  #stream: MarkdownStream = EMPTY_STREAM;
  /** The streamed text that `#stream` has seen. */
  #streamed = "";
  /** What was told as streamed when an answer was recorded: until the next one begins, that may still be it. */
  #recorded = "";
  /** The thoughts that were written out before their record came. */
  #thought = "";

  /** The end of the conversation as it was when it was opened. */
  open(state: ChatState, columns: number): Line[] {
    const finished = state.items.slice(0, pendingAt(state));
    const skipped = finished.slice(0, -ITEMS_MAX);
    for (const item of skipped) this.#written.set(item.id, stateOf(item));
    const rows = finished.slice(skipped.length).flatMap((item) => this.#add(item, columns));
    return skipped.length === 0
      ? rows
      : [line(`… ${skipped.length} earlier items: holdfast show ${state.id}`, { dim: true }), ...rows];
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

  /** The answer that is being streamed, as far as it has come, when nobody stays for the rest. */
  breakOff(state: ChatState, columns: number): Line[] {
    const text = state.live?.text ?? "";
    if (text === "" || text === this.#recorded || !text.startsWith(this.#streamed)) return [];
    return [...(this.#stream.begun ? [] : [BLANK]), ...finishStream(this.#stream, text, columns), cutOffLine()];
  }

  /** A call that was written out before anybody knew its end is written again with it, as after an interruption. */
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
      // Several texts of one message were streamed as one: this one is written out, and the next goes on behind it.
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
      // The request is made again: what stands in the scrollback cannot be taken back, but it can be called void.
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

/** The first item that still changes: a call of the last turn. What follows waits for it, so that the order holds. */
function pendingAt(state: ChatState): number {
  const working = state.status === "running" || state.status === "waiting";
  const prompt = state.items.findLastIndex(({ kind }) => kind === "prompt");
  const at = state.items.findIndex((item, i) => i > prompt && item.kind === "call" && mayChange(item, working));
  return at === -1 ? state.items.length : at;
}

/**
 * While a turn works, an outcome that is not known is one that is being recorded. After its end only a tool that has
 * not stopped yet has one to come.
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

/** Items that are shown in the live part, since they may still change. */
export function pendingItems(state: ChatState): readonly Item[] {
  return state.items.slice(pendingAt(state));
}
