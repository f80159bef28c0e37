import type { Conversation } from "../conversation/conversation.ts";
import { type Item, isShown } from "../conversation/item.ts";
import { deepFreeze } from "../conversation/snapshot.ts";
import type { Dialect, Entry } from "../dialects/dialect.ts";
import { unfitNow } from "../dialects/mapped/mapped-order.ts";
import { HoldfastError } from "../errors.ts";
import { isWellFormed, wellFormed } from "../text/well-formed.ts";

export interface ViewParts<M> {
  /** What will follow it. */
  readonly next: "prompt" | "model";
  /** Entries synthesized for this view, after all others. */
  readonly made: readonly Entry<M>[];
  /** Steps that cannot be shown. */
  readonly without: ReadonlySet<string>;
}

/**
 * The conversation as the model sees it: the visible entries, arranged by the dialect (P4, R1). Throws MESSAGE_UNFIT if
 * the dialect can no longer read one of them: left out, the model would be sent a conversation with a hole in it.
 */
export function arrangeView<M>(conversation: Conversation<M>, parts: ViewParts<M>): readonly M[] {
  const { next, made, without } = parts;
  const { items, dialect, changed } = conversation;
  const isAsMade = conversation.isWellFormed && made.every((entry) => isSentAsMade(dialect, entry));
  const regular = isAsMade ? conversation.regular : null;
  if (regular?.isSettled && made.length === 0 && without.size === 0) return deepFreeze([...regular.shown]);
  const view = regular && !regular.isSettled && withOpenEnd(conversation, regular.shown, parts);
  if (view) return view;
  const entries: Entry<M>[] = [];
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    if (isShown(item) && (without.size === 0 || !without.has(item.entry.step))) entries.push(item.entry);
  }
  for (const entry of made) entries.push(entry);
  for (const entry of entries) {
    const why = unfitNow(dialect, entry);
    if (why !== null) throw unfitEntry(dialect.name, entry, why);
  }
  const messages = deepFreeze(dialect.arrange(entries, { ...changed.seen(items), next }));
  return isAsMade ? messages : Object.freeze(messages.map(sent));
}

function isSentAsMade<M>(dialect: Dialect<M>, entry: Entry<M>): boolean {
  return isWellFormed(entry.message) && unfitNow(dialect, entry) === null;
}

/**
 * A regular conversation in which calls wait: only its live end is arranged, behind words in the user's role, since
 * what comes before it ends with another's. Null if the dialect changes or drops those.
 */
function withOpenEnd<M>(
  { items, exchange, dialect }: Conversation<M>,
  shown: readonly M[],
  { next, made, without }: ViewParts<M>,
): readonly M[] | null {
  const before = items[items.length - exchange.items.length - 1];
  if (!before || !isShown(before)) return null;
  const lead = { ...before.entry, message: dialect.boundary("…") };
  const end = exchange.items.filter(isShown).map(({ entry }) => entry);
  const kept = end.filter(({ step }) => !without.has(step));
  const [first, ...messages] = dialect.arrange([lead, ...kept, ...made], { changedAt: null, next });
  if (first !== lead.message) return null;
  return Object.freeze(shown.slice(0, shown.length - end.length).concat(deepFreeze(messages)));
}

function unfitEntry(dialect: string, { id, seq, turn }: Entry<unknown>, why: string): HoldfastError {
  const message =
    `No request can be made: message ${id.slice(0, 80)} of turn ${turn} no longer fits the dialect "${dialect}": ${why}. ` +
    "It is still recorded, and nothing was changed. Make the dialect accept it again, or hide it: " +
    "session.patch(id, { hiddenFromModel: true }).";
  return new HoldfastError("MESSAGE_UNFIT", message, { dialect, why, message: id, seq, turn });
}

const copies = new WeakMap<object, object>();
const originals = new WeakMap<object, object>();

/**
 * What the model receives of a frozen message: the message itself, or, if it contains half a character, a cleaned copy,
 * always the same one.
 */
function sent<M>(message: M): M {
  if (typeof message !== "object" || message === null) return wellFormed(message);
  const known = copies.get(message);
  if (known) return known as M;
  const copy = deepFreeze(wellFormed(message));
  copies.set(message, copy);
  if (copy !== message) originals.set(copy, message);
  return copy;
}

/** The message that a view was made from, if it shows a copy. */
export function originalOf<M>(message: M): M {
  const original = typeof message === "object" && message !== null ? originals.get(message) : undefined;
  return (original as M | undefined) ?? message;
}

/**
 * Whether a request with the visible messages would end with the model's own words (R2). Looks at as little as
 * possible.
 */
export function endsWithAnswer<M>(conversation: Conversation<M>): boolean {
  const { exchange, dialect } = conversation;
  const shown = exchange.items.filter(isShown).map(({ entry }) => entry);
  if (hasUnfit(conversation, exchange.items)) return false;
  const messages = dialect.arrange(shown, { changedAt: null, next: "model" });
  const last = messages.at(-1) ?? lastBefore(conversation);
  return last !== undefined && dialect.role(last) === "assistant";
}

/** If the live end has nothing to send, the end is what comes before it. */
function lastBefore<M>(conversation: Conversation<M>): M | undefined {
  if (hasUnfit(conversation, conversation.items)) return undefined;
  return arrangeView(conversation, { next: "model", made: [], without: new Set() }).at(-1);
}

/** Then no request can be made. The session can still be opened, shown and corrected. */
function hasUnfit<M>({ dialect }: Conversation<M>, items: readonly Item<M>[]): boolean {
  return items.some((item) => isShown(item) && unfitNow(dialect, item.entry) !== null);
}
