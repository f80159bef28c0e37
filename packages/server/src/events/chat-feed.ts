import type { Chat, ChatEvent, ChatState, LiveAnswer } from "../contract/host.ts";
import type { Item } from "../contract/item.ts";
import type { TextEvent } from "../schemas/events.ts";

/** What a follower of an open chat receives. Every text is JSON, made once for all followers. */
export interface FeedListener {
  state(json: string): void;
  /** `end` is the position after it. */
  text(piece: Piece): void;
  closed(): void;
}

/** A piece of the live answer. */
export interface Piece {
  readonly answer: string;
  readonly end: number;
  readonly json: string;
}

type Run = TextEvent;
type FeedState = Omit<ChatState, "items" | "live">;

const NOTHING: LiveAnswer = { text: "", reasoning: "", calls: [] };
/** While the chat is busy, changes that no event announces are noticed this often. */
const TICK_MS = 50;

let feeds = 0;

/**
 * What followers see of a chat that this server has open: its state as changes, and the live answer as text with
 * positions. It only compares states, so it knows nothing about turns.
 */
export class ChatFeed {
  readonly chat: Chat;
  readonly #listeners = new Set<FeedListener>();
  readonly #closing: (() => void)[] = [];
  readonly #unsubscribe: () => void;
  readonly #name = `${process.pid.toString(36)}-${(feeds++).toString(36)}-${Date.now().toString(36)}`;
  readonly #json = new Map<keyof FeedState, string>();
  #seen: ChatState;
  /** Counts the changes of the items, so that a client can tell whether a range it read shows a change already. */
  #version = 0;
  /** Counts the announcements. */
  #position = 0;
  #answers = 0;
  #runs: Run[] = [];
  #tick: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(chat: Chat) {
    this.chat = chat;
    this.#seen = chat.state;
    for (const [name, value] of shownIn(chat.state)) this.#json.set(name, JSON.stringify(value));
    this.#stream(null, chat.state.live, null);
    this.#unsubscribe = chat.subscribe((event) => this.#hear(event));
    this.#pace();
  }

  get followers(): number {
    return this.#listeners.size;
  }

  get items(): readonly Item[] {
    this.sync();
    return this.#seen.items;
  }

  /** Names the state of the items. */
  get version(): string {
    return `${this.#name}.${this.#version}`;
  }

  /** Names what has been announced. */
  get position(): string {
    this.sync();
    return `${this.#name}.${this.#position}`;
  }

  follow(listener: FeedListener): () => void {
    this.sync();
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls the listener when the feed is closed. */
  onClose(listener: () => void): void {
    this.#closing.push(listener);
  }

  /** The whole state, as the JSON of a `state` event. */
  whole(): string {
    this.sync();
    const { items, live: _live, ...shown } = this.#seen;
    const state = { ...shown, count: items.length, ...(this.#seen.live ? {} : { live: null }) };
    return JSON.stringify({ whole: true, version: this.version, position: this.position, state });
  }

  /** What is live now, after a position in the same answer, or from its start. */
  textAfter(answer: string | null, position: number): Piece[] {
    if (this.#seen.live === null) return [];
    const from = answer === this.#answer ? position : 0;
    return this.#runs
      .filter(({ at, text }) => at + text.length > from || text === "")
      .map((run) => (run.at >= from ? run : { ...run, at: from, text: run.text.slice(from - run.at) }))
      .map((run) => ({ answer: run.answer, end: run.at + run.text.length, json: JSON.stringify(run) }));
  }

  close(): void {
    for (const listener of this.#closing.splice(0)) listener();
    this.#unsubscribe();
    this.#isClosed = true;
    this.#pace();
    for (const listener of [...this.#listeners]) listener.closed();
    this.#listeners.clear();
  }

  /** Announces what changed. */
  sync(event: ChatEvent | null = null): void {
    const [before, now] = [this.#seen, this.chat.state];
    this.#seen = now;
    if (before !== now) this.#stream(before.live, now.live, event);
    const change: Record<string, unknown> = {};
    if (before !== now) {
      for (const [name, value] of shownIn(now)) {
        if (value === before[name]) continue;
        const json = JSON.stringify(value);
        if (json === this.#json.get(name)) continue;
        this.#json.set(name, json);
        // The event has what was added.
        if (name === "outputs" && event?.type === "tool.output") continue;
        change[name] = value;
      }
      if (before.live !== null && now.live === null) change["live"] = null;
    }
    const items = spliceOf(before.items, now.items);
    if (items) {
      this.#version++;
      change["count"] = now.items.length;
    }
    const turn = event?.type === "turn.ended" ? { turn: now.items.at(-1)?.turn ?? 0 } : {};
    const said = event && !isShownOtherwise(event) ? { event, ...turn } : {};
    if (Object.keys(change).length === 0 && !items && !("event" in said)) return;
    this.#position++;
    if (this.#listeners.size === 0) return;
    const json = JSON.stringify({
      whole: false,
      version: this.version,
      position: `${this.#name}.${this.#position}`,
      state: change,
      ...(items ? { items } : {}),
      ...said,
    });
    for (const listener of this.#listeners) listener.state(json);
  }

  #hear(event: ChatEvent): void {
    this.sync(event);
    this.#pace();
    // Whether the chat goes on is known as soon as this is handled. Nobody need wait for the next look.
    if (event.type === "turn.ended") setImmediate(() => this.#look());
  }

  #look(): void {
    this.sync();
    this.#pace();
  }

  get #answer(): string {
    return `${this.#name}-${this.#answers}`;
  }

  #pace(): void {
    const isBusy = this.#seen.isBusy && !this.#isClosed;
    if (isBusy === (this.#tick !== null)) return;
    if (this.#tick) clearInterval(this.#tick);
    this.#tick = isBusy ? setInterval(() => this.#look(), TICK_MS).unref() : null;
  }

  /** Announces what was added to the live answer. */
  #stream(before: LiveAnswer | null, now: LiveAnswer | null, event: ChatEvent | null): void {
    if (before === now || now === null) return;
    const said = event?.type === "text" || event?.type === "reasoning" ? event : null;
    // Most often. Comparing the texts at each piece would take time that grows with the square of their length.
    if (before !== null && said && isNothingElse(before, now, said) && hasGrown(before, now, said)) {
      this.#add(said.type, said.text);
      return;
    }
    const goesOn = before !== null && (said === null || hasGrown(before, now, said)) && isContinued(before, now);
    if (!goesOn) {
      this.#answers++;
      this.#runs = [];
    }
    const old = goesOn ? before : NOTHING;
    this.#add("reasoning", now.reasoning.slice(old.reasoning.length));
    this.#add("text", now.text.slice(old.text.length));
    for (const [index, { id, name, input }] of now.calls.entries()) {
      const known = old.calls[index];
      if (known?.input !== input) this.#add("input", input.slice(known?.input.length ?? 0), { id, name });
    }
  }

  #add(channel: Run["channel"], text: string, call?: Run["call"]): void {
    if (text === "" && call === undefined) return;
    const last = this.#runs.at(-1);
    const at = last ? last.at + last.text.length : 0;
    const run: Run = { answer: this.#answer, at, channel, text, ...(call ? { call } : {}) };
    if (last && last.channel === channel && last.call?.id === call?.id) {
      this.#runs[this.#runs.length - 1] = { ...last, text: last.text + text };
    } else this.#runs.push(run);
    if (this.#listeners.size === 0) return;
    const piece = { answer: run.answer, end: at + text.length, json: JSON.stringify(run) };
    for (const listener of this.#listeners) listener.text(piece);
  }
}

/** Followers get these as `text`, or as items. */
function isShownOtherwise({ type }: ChatEvent): boolean {
  return type === "text" || type === "reasoning" || type === "item";
}

function shownIn({ items: _items, live: _live, ...shown }: ChatState): [keyof FeedState, unknown][] {
  return Object.entries(shown) as [keyof FeedState, unknown][];
}

type TextPiece = Extract<ChatEvent, { type: "text" | "reasoning" }>;

/** The text is as long as it is if this piece was added to it. */
function hasGrown(before: LiveAnswer, now: LiveAnswer, { type, text }: TextPiece): boolean {
  return now[type].length === before[type].length + text.length;
}

function isNothingElse(before: LiveAnswer, now: LiveAnswer, { type }: TextPiece): boolean {
  const other = type === "text" ? "reasoning" : "text";
  return now[other].length === before[other].length && now.calls === before.calls;
}

/** The live answer may have been replaced between two looks, by a retry or the next step. */
function isContinued(before: LiveAnswer, now: LiveAnswer): boolean {
  if (!now.text.startsWith(before.text) || !now.reasoning.startsWith(before.reasoning)) return false;
  return before.calls.every(({ id, input }, index) => {
    const call = now.calls[index];
    return call?.id === id && call.input.startsWith(input);
  });
}

/** How one list becomes another; null if they are the same. */
export function spliceOf(
  before: readonly Item[],
  now: readonly Item[],
): { readonly at: number; readonly remove: number; readonly insert: readonly Item[] } | null {
  if (before === now) return null;
  let start = 0;
  const least = Math.min(before.length, now.length);
  while (start < least && before[start] === now[start]) start++;
  let end = 0;
  while (end < least - start && before[before.length - 1 - end] === now[now.length - 1 - end]) end++;
  if (start === before.length && start === now.length) return null;
  return { at: start, remove: before.length - end - start, insert: now.slice(start, now.length - end) };
}
