import { type Admission, found, readable, type StoredMessage, unfit } from "../admit/admit.ts";
import { assertId } from "../admit/to-records.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { type Item, isShown } from "../conversation/item.ts";
import { PendingEdits } from "../conversation/pending-edits.ts";
import type { MessageRecord, RepairEntry } from "../conversation/records/records.ts";
import { defined } from "../defined.ts";
import type { Dialect, Entry } from "../dialects/dialect.ts";
import { HoldfastError } from "../errors.ts";
import { snapshot } from "../journal/lines/plain.ts";
import type { Json } from "../journal/record.ts";
import { repairedEntry } from "../view/repairs.ts";
import { stepsIn } from "../view/unsent.ts";

/** A message or entry for a new epoch, copied when it was given (R19). */
export interface ReplaceInput<M> {
  /** Null for a bare message. */
  readonly entry: Entry<M> | null;
  /** Null: use the message recorded for the entry. */
  readonly stored: StoredMessage | null;
}

/** An entry of the conversation, with its recorded message. */
export function toGiven<M>(entry: Entry<M>): ReplaceInput<M> {
  return { entry, stored: null };
}

/** The items given to `replace`. Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, each with the index in the list. */
export function admitReplacement<M>(
  conversation: Conversation<M>,
  items: readonly (M | Entry<M>)[],
  admission: Pick<Admission<M>, "message" | "metadata">,
): ReplaceInput<M>[] {
  if (!Array.isArray(items)) throw unfit(`expected a list of messages and entries, not ${found(items)}`);
  const list: readonly (M | Entry<M>)[] = readable("message", undefined, () => [...items]);
  return list.map((one, index) =>
    readable("message", index, () => {
      const entry = entryIn(one);
      if (!entry) return { entry, stored: admission.message(one as M, index) };
      const known = conversation.find(entry.id);
      if (known && known.entry.message === entry.message) return toGiven(entry);
      if (!known) assertId(entry.id);
      const metadata = entry.metadata === undefined ? {} : admission.metadata(entry.metadata);
      const { message, ...members } = { ...entry, metadata };
      return { entry: { ...snapshot(members, "entry"), message }, stored: admission.message(message, index) };
    }),
  );
}

/** Recognized by shape, so that a copy counts too. Each member is read once. */
function entryIn<M>(given: M | Entry<M>): Entry<M> | null {
  if (typeof given !== "object" || given === null || !("message" in given)) return null;
  const {
    id,
    step,
    seq,
    at,
    turn,
    message,
    metadata,
    synthetic,
    incomplete,
    late,
    replacedBy,
    model,
    call,
    value,
    source,
  } = given as Entry<M>;
  if (typeof id !== "string" || typeof step !== "string" || typeof seq !== "number") return null;
  return {
    ...{ id, seq, at, turn, step, message, metadata },
    ...defined({ model, synthetic, replacedBy, value, source }),
    ...defined({ incomplete: incomplete || undefined, late: late || undefined, call: call || undefined }),
  };
}

/** An entry prepared for a new epoch or a fork. */
export interface Retained<M> extends Item<M> {
  readonly stored: Json;
  /** Not recorded before, here or elsewhere. */
  readonly isNew: boolean;
}

/**
 * An entry of the conversation is used as recorded, whichever copy of it is given, so that patches and edits made since
 * then are kept. Entries from elsewhere (an older epoch, another session) are used as given. Throws MESSAGE_ID_TAKEN
 * for an entry that is given twice, or whose message differs from the recorded one.
 */
export function retainGiven<M>(
  conversation: Conversation<M>,
  given: readonly ReplaceInput<M>[],
  newId: () => string,
): Retained<M>[] {
  const ids = new Set<string>();
  const fresh = given.map(({ entry }) => (entry ? "" : newId()));
  const steps = stepsOfNew(conversation, given, fresh);
  return given.map(({ entry, stored }, at) => {
    const carried = entry
      ? retainEntry(conversation, entry, stored)
      : retainMessage(conversation, stored!, fresh[at]!, steps[at]!);
    const { id } = carried.entry;
    if (ids.has(id)) {
      const message = `The entry ${id} was given twice, but an id stands for one message. Nothing was changed. To repeat a message, pass the message itself.`;
      throw new HoldfastError("MESSAGE_ID_TAKEN", message, { id });
    }
    ids.add(id);
    return carried;
  });
}

function retainEntry<M>(conversation: Conversation<M>, given: Entry<M>, stored: StoredMessage | null): Retained<M> {
  const { dialect, turns } = conversation;
  const item = conversation.find(given.id);
  if (item) {
    if (!stored || dialect.same(decodeMessage(dialect, stored.stored), item.entry.message))
      return retain(item, dialect);
    const message =
      `The entry ${given.id} was given with a message that differs from the one recorded under this id. Nothing was changed. ` +
      "Pass the new message itself, without the entry, or change it with `edit`.";
    throw new HoldfastError("MESSAGE_ID_TAKEN", message, { id: given.id });
  }
  const { stored: message, redacted } = stored ?? { stored: encodeMessage(dialect, given.message), redacted: false };
  const entry: Entry<M> = {
    ...given,
    at: typeof given.at === "string" ? given.at : conversation.at,
    turn: typeof given.turn === "number" ? given.turn : turns,
    message: decodeMessage(dialect, message),
    metadata: given.metadata ?? {},
  };
  return { ...itemOf(dialect, entry, "message", redacted), stored: message, isNew: false };
}

/** The steps of bare messages; an entry has its own. */
function stepsOfNew<M>(
  { dialect }: Conversation<M>,
  given: readonly ReplaceInput<M>[],
  ids: readonly string[],
): readonly string[] {
  const steps: string[] = [];
  for (let from = 0, to = 0; from < given.length; from = to) {
    to += 1;
    if (given[from]!.entry) steps.push("");
    else {
      while (to < given.length && !given[to]!.entry) to += 1;
      const messages = given.slice(from, to).map(({ stored }) => decodeMessage(dialect, stored!.stored));
      for (const step of stepsIn(messages, dialect, (at) => ids[from + at]!)) steps.push(step);
    }
  }
  return steps;
}

function retainMessage<M>(
  conversation: Conversation<M>,
  { stored, redacted }: StoredMessage,
  id: string,
  step: string,
): Retained<M> {
  const { dialect, head: seq, at, turns: turn } = conversation;
  const entry: Entry<M> = { id, seq, at, turn, step, message: decodeMessage(dialect, stored), metadata: {} };
  return { ...itemOf(dialect, entry, "message", redacted), stored, isNew: true };
}

/** A synthesized result for a call of that turn. */
export function madeUp<M>(conversation: Conversation<M>, made: RepairEntry, turn: number): Retained<M> {
  const entry = { ...repairedEntry(conversation, made), turn };
  return { ...itemOf(conversation.dialect, entry, "repair", false), stored: made.message, isNew: true };
}

function itemOf<M>(dialect: Dialect<M>, entry: Entry<M>, from: Item<M>["from"], redacted: boolean): Item<M> {
  return { entry, from, role: dialect.role(entry.message), hidden: false, redacted };
}

/** A message shown by an edit, as it will be recorded: in a step of its own. */
export function shownItem<M>(conversation: Conversation<M>, id: string, step: string, stored: Json): Item<M> {
  const { dialect, head: seq, at, turns: turn } = conversation;
  const entry: Entry<M> = { id, seq, at, turn, step, message: decodeMessage(dialect, stored), metadata: {} };
  return itemOf(dialect, entry, "edit", false);
}

/** Copies an entry that is already recorded, and so was already checked. */
export function retain<M>(item: Item<M>, dialect: Dialect<M>): Retained<M> {
  return { ...item, stored: encodeMessage(dialect, item.entry.message), isNew: false };
}

export function encodeMessage<M>(dialect: Dialect<M>, message: M): Json {
  return dialect.encode ? dialect.encode(message) : (message as Json);
}

function decodeMessage<M>(dialect: Dialect<M>, stored: Json): M {
  return dialect.decode ? dialect.decode(stored) : (stored as M);
}

/** Applies changes that were waiting for the next turn: a new epoch has no past that could change later. */
export function settle<M>(items: Item<M>[], dialect: Dialect<M>): void {
  const past = new PendingEdits<M>();
  past.note();
  past.settle(items, dialect);
}

/**
 * Copies with all edits applied and nothing hidden. Hidden messages can be shown again and must then be complete:
 * hiding a pair must not separate a call from its result (R3).
 */
export function unhide<M>(items: readonly Item<M>[], dialect: Dialect<M>): Item<M>[] {
  const all = items.map((item) => {
    const { hiddenFromModel: _, ...metadata } = item.entry.metadata;
    return { ...item, entry: { ...item.entry, metadata } };
  });
  settle(all, dialect);
  return all;
}

export function retainedRecord<M>({ entry, stored, isNew, hidden, redacted }: Retained<M>): MessageRecord {
  const { id, turn, step, metadata, model, at, synthetic, incomplete, late, replacedBy, call } = entry;
  const { value, source } = entry;
  return {
    ...{ kind: "message", id, turn, step, message: stored },
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...defined({ model, redacted: redacted || undefined }),
    carried: true,
    ...(isNew ? {} : { first: at }),
    ...defined({ synthetic, incomplete, late, replacedBy, hidden: hidden || undefined, call, value, source }),
  };
}

/**
 * Where signed reasoning may no longer be sent (R1). If the visible messages are a prefix or a continuation of those
 * shown before, nothing changed: then the range of an earlier change stays, as far as it is retained. `from`: an entry
 * after which the past differs in any case.
 */
export function changedStretch<M>(
  { items, changed }: Conversation<M>,
  carried: readonly Retained<M>[],
  from: string | null = null,
): { from: string; until: string } | null {
  const before = items.filter(isShown);
  const after = carried.filter(isShown);
  let same = 0;
  while (same < after.length && same < before.length && after[same]!.entry.id === before[same]!.entry.id) same += 1;
  const differs = same < after.length && same < before.length ? after[same]!.entry.id : null;

  const old = stretchIn(items, changed.saved(), new Set(carried.map(({ entry }) => entry.id)));
  let first = -1;
  let last = -1;
  for (const [at, { entry }] of carried.entries()) {
    const isNewly = entry.id === differs || entry.id === from;
    if (first < 0 && (isNewly || old.has(entry.id))) first = at;
    if (isNewly) last = carried.length - 1;
    else if (old.has(entry.id)) last = Math.max(last, at);
  }
  return first < 0 ? null : { from: carried[first]!.entry.id, until: carried[last]!.entry.id };
}

/** The ids that lie in the range. */
function stretchIn<M>(
  items: readonly Item<M>[],
  saved: { readonly from: string; readonly until: string } | null,
  ids: ReadonlySet<string>,
): Set<string> {
  const inside = new Set<string>();
  if (!saved) return inside;
  let isInside = false;
  for (const { entry } of items) {
    isInside ||= entry.id === saved.from;
    if (isInside && ids.has(entry.id)) inside.add(entry.id);
    if (isInside && entry.id === saved.until) break;
  }
  return inside;
}
