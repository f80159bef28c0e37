import { weightOf } from "../admit/size.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { type Item, isShown } from "../conversation/item.ts";
import { type EditRecord, SYNCED } from "../conversation/records/records.ts";
import type { Comparison, Slot } from "./comparison.ts";
import { isNamed, placesOf } from "./match.ts";

/** Small changes that the application made in its array, recorded as edits: they cost only what is new (P7). */
export interface Edits<M> {
  /** One unit. */
  readonly records: readonly EditRecord[];
  /** The array up to `cut`, after the edits. */
  readonly slots: Slot<M>[];
  /** Messages from here on are new. */
  readonly cut: number;
  /** The ids of the replacement messages. */
  readonly added: readonly string[];
}

export interface EditParts<M> {
  readonly slots: readonly Slot<M>[];
  readonly matches: readonly (number | null)[];
  readonly conversation: Conversation<M>;
  readonly comparison: Comparison<M>;
  /** From here on the assistant's messages are still growing. */
  readonly growing: number;
  readonly newId: () => string;
}

/** What happened to a slot: the message that matches or replaces it; null if it is gone. */
type Fate = { readonly at: number; readonly isChanged: boolean } | null;

/**
 * Null if the array is not the old one with a few messages changed or removed: then it needs a new epoch. A changed
 * message has the same neighbours and role, makes the same calls and answers the same ones, so every call keeps its
 * result. Removed calls are removed with their results. At the end of the array, where a neighbour is missing, only
 * calls and results can count as changed: anything else is another answer or another prompt.
 */
export function planEdits<M>(parts: EditParts<M>): Edits<M> | null {
  const { slots, matches, conversation } = parts;
  const known = matches.reduce<number>((count, slot) => (slot === null ? count : count + 1), 0);
  // More is gone than is left, so the change is not small.
  if (slots.length - known > known) return null;
  const fates = fatesOf(parts);
  if (!fates) return null;
  const { of, cut } = fates;
  const changes: Change[] = [];
  for (let slot = 0; slot < slots.length; slot++) {
    const fate = of[slot]!;
    if (fate && !fate.isChanged) continue;
    const span = stepAround(slot, parts);
    if (!span) return null;
    const last = changes.at(-1);
    const kept = span.flatMap((one) => of[one]?.at ?? []);
    if (last && last.shown.length === 0 && kept.length === 0 && last.slots.at(-1) === span[0]! - 1)
      last.slots.push(...span);
    else changes.push({ slots: [...span], shown: kept });
    slot = span.at(-1)!;
  }
  const gone = changes.flatMap((change) => change.slots.map((slot) => slots[slot]!.id!));
  return isWorthAnEpoch(conversation.items, new Set(gone)) ? null : made(parts, of, changes, cut);
}

interface Change {
  /** The replaced slots. */
  readonly slots: number[];
  /** The array's messages that replace them. */
  readonly shown: readonly number[];
}

/** Extends to the whole step (R3). Null if one of its slots is not an entry shown as it was recorded. */
function stepAround<M>(slot: number, { slots, conversation }: EditParts<M>): number[] | null {
  const stepOf = (one: number): string | null => {
    const id = slots[one]?.id ?? null;
    const item = id === null ? null : conversation.find(id);
    return item && isShown(item) && item.from !== "result" ? item.entry.step : null;
  };
  const step = stepOf(slot);
  if (step === null) return null;
  const span = [slot];
  while (stepOf(span[0]! - 1) === step) span.unshift(span[0]! - 1);
  while (stepOf(span.at(-1)! + 1) === step) span.push(span.at(-1)! + 1);
  return span;
}

function fatesOf<M>(parts: EditParts<M>): { of: Fate[]; cut: number } | null {
  const { slots, matches } = parts;
  const of: Fate[] = new Array(slots.length).fill(null);
  let slot = 0;
  let at = 0;
  for (;;) {
    if (at < matches.length && matches[at] === slot) {
      of[slot++] = { at: at++, isChanged: false };
      continue;
    }
    const messages: number[] = [];
    while (at < matches.length && matches[at] === null) messages.push(at++);
    const isEnd = at === matches.length;
    const next = isEnd ? slots.length : matches[at]!;
    if (next < slot) return null;
    const gap = Array.from({ length: next - slot }, (_, n) => slot + n);
    const known = isEnd ? changedAtEnd(parts, gap, messages) : changedBetween(parts, gap, messages);
    if (!known) return null;
    for (const [one, fate] of known) of[one] = fate;
    if (isEnd) return { of, cut: at - messages.length + known.length };
    of[next] = { at, isChanged: false };
    slot = next + 1;
    at += 1;
  }
}

type Pairs = [slot: number, fate: Fate][];

/**
 * Matches each message to a slot, in order; the other slots are gone. If some are gone, only messages with call ids can
 * be matched: a text in place of several is a summary.
 */
function changedBetween<M>(parts: EditParts<M>, gap: readonly number[], messages: readonly number[]): Pairs | null {
  const pairs: Pairs = [];
  const isOneForOne = gap.length === messages.length;
  let slot = 0;
  for (const at of messages) {
    if (!isOneForOne && !isNamed(parts.comparison.array.content(at), parts.conversation.dialect)) return null;
    while (slot < gap.length && !hasItsPlace(parts, gap[slot]!, at)) pairs.push([gap[slot++]!, null]);
    if (slot === gap.length) return null;
    pairs.push([gap[slot++]!, { at, isChanged: true }]);
  }
  while (slot < gap.length) pairs.push([gap[slot++]!, null]);
  return isClosed(
    parts,
    pairs.flatMap(([one, fate]) => (fate ? [] : [one])),
  )
    ? pairs
    : null;
}

/** The first messages match the slots, one by one; the others are new. */
function changedAtEnd<M>(parts: EditParts<M>, gap: readonly number[], messages: readonly number[]): Pairs | null {
  if (gap.length === 0) return [];
  if (messages.length < gap.length) return null;
  const pairs: Pairs = [];
  for (const [n, slot] of gap.entries()) {
    const at = messages[n]!;
    if (!hasItsPlace(parts, slot, at) || !isNamed(parts.slots[slot]!.recorded, parts.conversation.dialect)) return null;
    pairs.push([slot, { at, isChanged: true }]);
  }
  return pairs;
}

function hasItsPlace<M>(parts: EditParts<M>, slot: number, at: number): boolean {
  const { slots, comparison, growing } = parts;
  const { dialect } = parts.conversation;
  if (at >= growing) return false;
  return placesOf(slots[slot]!.recorded, dialect) === placesOf(comparison.array.content(at), dialect);
}

/** Whether the removed slots are complete: each call with its result, each result with its call. */
function isClosed<M>({ slots, conversation: { dialect } }: EditParts<M>, gone: readonly number[]): boolean {
  const open: string[] = [];
  for (const slot of gone) {
    const { recorded } = slots[slot]!;
    for (const { id } of dialect.calls(recorded)) open.push(id);
    for (const { call } of dialect.results(recorded)) {
      const made = open.indexOf(call);
      if (made < 0) return false;
      open.splice(made, 1);
    }
  }
  return open.length === 0;
}

function made<M>(
  { slots, matches, comparison, newId }: EditParts<M>,
  of: readonly Fate[],
  changes: readonly Change[],
  cut: number,
): Edits<M> {
  const { array } = comparison;
  const ids = new Map<number, string>();
  const added: string[] = [];
  const records = changes.map(({ slots: gone, shown }): EditRecord => {
    const messages = shown.map((at) => {
      const id = newId();
      const { stored, redacted } = array.held(at).stored;
      ids.set(at, id);
      if (matches[at] === null) added.push(id);
      return { id, message: stored, ...(redacted ? { redacted: true as const } : {}) };
    });
    return {
      kind: "edit",
      id: newId(),
      ids: gone.map((slot) => slots[slot]!.id!),
      shown: messages,
      reason: SYNCED,
      now: true,
    };
  });
  const after: Slot<M>[] = [];
  for (const [slot, fate] of of.entries()) {
    if (!fate) continue;
    const id = ids.get(fate.at);
    const given = array.objects[fate.at]!;
    if (id !== undefined) after[fate.at] = { given, recorded: comparison.stored(fate.at), id };
    else after[fate.at] = slots[slot]!.given === given ? slots[slot]! : { ...slots[slot]!, given };
  }
  return { records, slots: after, cut, added };
}

/** Below this, content kept only for people is not worth an epoch. */
const SUPERSEDED_CHARS_MIN = 256 * 1024;

/**
 * Content that the array no longer has stays in the epoch, in memory and on disk. A new epoch starts once there is more
 * of it than of the array's content. So the cost of an epoch is spread over as many changes as it has messages, and the
 * live conversation bounds what is kept.
 */
function isWorthAnEpoch<M>(items: readonly Item<M>[], gone: ReadonlySet<string>): boolean {
  let count = 0;
  let chars = 0;
  for (const item of items) {
    const isGone = item.superseded === true || gone.has(item.entry.id);
    const weight = weightOf(item.entry.message);
    count += isGone ? 1 : -1;
    chars += isGone ? weight : -weight;
  }
  return count > 0 || chars > SUPERSEDED_CHARS_MIN;
}
