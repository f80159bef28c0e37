import { beginningOf, wellFormedText } from "../../text/well-formed.ts";
import type { Entry, View } from "../dialect.ts";
import { type PairedCall, type PairedExchange, pair, type Reader } from "./pairing.ts";

/**
 * What a view shows, before a dialect phrases it: which steps, which result for which call, and under which id.
 * What "prefix" means (R1). A list of entries is settled if no call in it waits for a result. The view of a settled
 * list is a prefix of the view of every longer list, message by message. In the dialects that join neighbours of one
 * role (anthropic, gemini; ai-sdk for the assistant's) its last message may continue with more blocks of the same role,
 * and a string content equals the list of that one text. Cache marks are not compared.
 * For a list that is not settled, this holds for the messages before the exchange (pairing.ts) of the first waiting
 * call: whether its step is shown, and with which results, is known only once they arrive, or once the assistant has
 * spoken again without them.
 */
export interface Plan {
  readonly exchanges: readonly PlannedExchange[];
  /** The call at this index of an entry, as it will be shown. */
  called(entry: number, index: number): ShownCall | null;
  /** The call that a result answers, if it is shown. */
  answered(entry: number, index: number): ShownCall | null;
  /**
   * Signed reasoning of this entry may no longer be sent: the past before it was changed, or another model signed it
   * (R1, R4).
   */
  stale(entry: number): boolean;
  foreign(entry: number): boolean;
}

export interface PlannedExchange {
  /** Without the steps that are left out. */
  readonly assistant: readonly number[];
  readonly others: readonly number[];
  /** The calls of those messages, in order. */
  readonly calls: readonly ShownCall[];
}

export interface ShownCall extends PairedCall {
  /** Renamed if it was used before. Empty if it came without one and needs none. */
  id: string;
}

export interface Manner<M> {
  /** Whether a message from another role says anything besides results. */
  speaks(message: M): boolean;
  /** Whether a call without an id is given one. */
  readonly needsIds: boolean;
  /** Converts an id to what the provider accepts: ids from another server may be longer or contain other characters. */
  readonly fit?: (id: string) => string;
  /** The scope in which an id must be unique. */
  readonly idsUniqueIn: "conversation" | "exchange";
  /** False: the provider never leaves its own call for the next request to finish. */
  readonly pauses?: boolean;
  /** Whether the results of two consecutive assistant messages are placed together after the second. */
  together(entries: readonly Entry<M>[], at: number, next: number): boolean;
}

export function planView<M>(entries: readonly Entry<M>[], view: View, dialect: Reader<M>, manner: Manner<M>): Plan {
  const { exchanges, calls: called, answers } = pair(entries, dialect);
  const last = exchanges.length - 1;
  // Before a prompt, among the entries or after them, nothing may stay open.
  const endsOpen = view.next === "model" && !exchanges[last]!.others.some((at) => manner.speaks(entries[at]!.message));
  const exchangeOf = exchangesOf(exchanges);
  const leftOut = new Set<string>();
  const stepOf = (at: number): string => `${exchangeOf(at)} ${entries[at]!.step}`;
  const isLeftOut = (at: number): boolean => leftOut.size > 0 && leftOut.has(stepOf(at));
  const end = endOf(entries, exchanges[last]!.assistant, manner);
  const isAtEnd = ({ exchange, entry }: PairedCall): boolean => exchange === last && entry >= end;
  const mayStayOpen = (call: PairedCall): boolean =>
    endsOpen &&
    (call.call.by === "agent" || (manner.pauses !== false && !call.call.atOnce)) &&
    (isAtEnd(call) || (call.call.by === "provider" && isCalledFrom(call.call.id, call.exchange + 1)));
  const isCalledFrom = callersOf(exchanges);
  // Backwards, since a provider's result may be in a later step that is left out itself; repeated until nothing
  // changes.
  for (let before = -1; before !== leftOut.size; ) {
    before = leftOut.size;
    for (let exchange = last; exchange >= 0; exchange--) {
      const { calls } = exchanges[exchange]!;
      for (let i = calls.length - 1; i >= 0; i--) {
        const call = calls[i]!;
        const isAnswered = call.answer !== null && !isLeftOut(call.answer.entry);
        if (!isAnswered && !mayStayOpen(call)) leftOut.add(stepOf(call.entry));
      }
    }
  }

  let names = new Names(manner);
  const plannedExchanges = exchanges.map((exchange): PlannedExchange => {
    if (manner.idsUniqueIn === "exchange") names = new Names(manner);
    const isWhole = leftOut.size === 0;
    const shown = isWhole ? exchange.calls : exchange.calls.filter(({ entry }) => !isLeftOut(entry));
    for (let i = 0; i < shown.length; i++) {
      const call = shown[i]!;
      call.id = names.of(call);
      if (call.answer && isLeftOut(call.answer.entry)) call.answer = null;
    }
    if (isWhole) return exchange as PlannedExchange;
    const assistant = exchange.assistant.filter((at) => !isLeftOut(at));
    return { assistant, others: exchange.others, calls: shown as ShownCall[] };
  });

  const changed = changedIn(entries, view);
  const redacted = redactedIn(entries, view);
  return {
    exchanges: plannedExchanges,
    called: (entry, index) => ifShown(called[entry]?.[index]),
    answered: (entry, index) => ifShown(answers[entry]?.[index]),
    stale: (at) => (at >= changed.from && at <= changed.until) || at >= redacted || isForeign(entries[at]!, view),
    foreign: (at) => isForeign(entries[at]!, view),
  };
}

/**
 * A provider's call may continue while the calls that it makes are answered: whether every exchange from this one on
 * makes such calls. Computed once, from the end, on demand.
 */
function callersOf(exchanges: readonly PairedExchange[]): (id: string, from: number) => boolean {
  let since: Map<string, number> | null = null;
  return (id, from) => {
    if (!since) {
      since = new Map();
      for (let at = exchanges.length - 1; at >= 0; at--) {
        for (const { call } of exchanges[at]!.calls) {
          const { caller } = call;
          const isUnbroken = at === exchanges.length - 1 || since.get(caller ?? "") === at + 1;
          if (caller !== undefined && isUnbroken) since.set(caller, at);
        }
      }
    }
    return from < exchanges.length && (since.get(id) ?? exchanges.length) <= from;
  };
}

/** By entry; looked up only where a step is left out. */
function exchangesOf(exchanges: readonly PairedExchange[]): (at: number) => number {
  let numbers: number[] | null = null;
  return (at) => {
    if (!numbers) {
      numbers = [];
      for (let n = 0; n < exchanges.length; n++) for (const entry of exchanges[n]!.assistant) numbers[entry] = n;
    }
    return numbers[at]!;
  };
}

/** The first of the messages that the last results follow. */
function endOf<M>(entries: readonly Entry<M>[], assistant: readonly number[], { together }: Manner<M>): number {
  let first = assistant.length - 1;
  while (first > 0 && together(entries, assistant[first - 1]!, assistant[first]!)) first -= 1;
  return assistant[first] ?? 0;
}

/** Consecutive assistant messages, in groups that their results follow. */
export function groupsOf<M>(
  entries: readonly Entry<M>[],
  assistant: readonly number[],
  { together }: Manner<M>,
): number[][] {
  const groups: number[][] = [];
  for (const at of assistant) {
    const last = groups.at(-1);
    if (last && together(entries, last.at(-1)!, at)) last.push(at);
    else groups.push([at]);
  }
  return groups;
}

function ifShown(call: PairedCall | undefined): ShownCall | null {
  return call && call.id !== null ? (call as ShownCall) : null;
}

/**
 * Covers whole steps. A start that is not among the entries may be anywhere before them; an end that is not, anywhere
 * after.
 */
function changedIn<M>(
  entries: readonly Entry<M>[],
  { changedAt, changedUntil }: View,
): { from: number; until: number } {
  const last = entries.length - 1;
  if (changedAt === null) return { from: entries.length, until: last };
  let from = entries.findIndex(({ id }) => id === changedAt);
  while (from > 0 && entries[from - 1]!.step === entries[from]!.step) from -= 1;
  let until = typeof changedUntil === "string" ? entries.findIndex(({ id }) => id === changedUntil) : last;
  // An end before its start is a mistake: better to send too little reasoning than some that is refused.
  if (until < Math.max(from, 0)) until = last;
  while (until < last && entries[until + 1]!.step === entries[until]!.step) until += 1;
  return { from, until };
}

/** Covers its whole step, too. An entry that is not in the list may be anywhere before it. */
function redactedIn<M>(entries: readonly Entry<M>[], { redactedAt }: View): number {
  if (typeof redactedAt !== "string") return entries.length;
  return changedIn(entries, { changedAt: redactedAt, next: "model" }).from;
}

function isForeign<M>(entry: Entry<M>, view: View): boolean {
  return view.model !== undefined && entry.model !== undefined && entry.model !== view.model;
}

/** OpenAI accepts ids of at most 64 characters. */
export const ID_LENGTH_MAX = 64;

/** For a call without a name: no provider accepts one. */
export const NAMELESS = "unnamed";

/**
 * The tool name as OpenAI accepts it. A model may invent another one, and a request that contains that call would be
 * refused.
 */
export function openaiName(name: unknown, lengthMax: number): string {
  if (typeof name !== "string" || name === "") return NAMELESS;
  return (/[^a-zA-Z0-9_-]/.test(name) ? name.replaceAll(/[^a-zA-Z0-9_-]/gu, "_") : name).slice(0, lengthMax);
}

/**
 * Unique ids. Each depends only on the calls before it, so that a longer conversation has the same ids at its beginning
 * (R1, R9).
 */
class Names {
  readonly #manner: Pick<Manner<never>, "needsIds" | "fit">;
  readonly #used = new Set<string>();
  readonly #repeats = new Map<string, number>();

  constructor(manner: Pick<Manner<never>, "needsIds" | "fit">) {
    this.#manner = manner;
  }

  of({ call, exchange, index }: PairedCall): string {
    if (call.by === "provider") {
      // The provider's own ids are never changed: it may know them.
      this.#used.add(call.id);
      return call.id;
    }
    const { needsIds, fit } = this.#manner;
    if (call.idless && !needsIds) return "";
    // Here, not after arranging: two ids may differ only in halves of characters.
    const given = call.idless ? `call_${exchange}_${index}` : wellFormedText(call.id);
    const wanted = fit ? fit(given) : given;
    if (!this.#used.has(wanted)) {
      this.#used.add(wanted);
      return wanted;
    }
    for (;;) {
      const count = (this.#repeats.get(wanted) ?? 1) + 1;
      this.#repeats.set(wanted, count);
      const suffix = `_${count}`;
      const id = beginningOf(wanted, ID_LENGTH_MAX - suffix.length) + suffix;
      if (this.#used.has(id)) continue;
      this.#used.add(id);
      return id;
    }
  }
}
