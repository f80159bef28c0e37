import type { Conversation } from "../conversation/conversation.ts";
import type { SessionRecord } from "../conversation/records/records.ts";
import { HoldfastError } from "../errors.ts";
import type { JournalRecord } from "../journal/record.ts";
import { type ReplaceOptions, replacement } from "./epoch.ts";
import { toGiven } from "./retained.ts";

/** The seq of the previous epoch's first record: `undone` needs all records from there on. Throws UNDO_TOO_LATE. */
export function undoFrom<M>({ undo }: Conversation<M>): number {
  if (undo !== null) return undo;
  const message =
    "There is no replacement to undo: there was none, a turn was started or resumed since, or it was already undone. Nothing was changed. " +
    "The earlier conversation is in the journal: read it with `follow` and restore it with `replace`.";
  throw new HoldfastError("UNDO_TOO_LATE", message);
}

/** The conversation as it would be without the last replacement. */
export interface EarlierConversation<M> {
  readonly conversation: Conversation<M>;
  /** The ids of the entries that existed before the replacement. */
  readonly before: ReadonlySet<string>;
  /** Adds a record written meanwhile. */
  add(record: JournalRecord): void;
}

/**
 * Folds the records of the previous epoch and everything recorded since, except the start of the current epoch. So
 * nothing recorded since is lost, and queue, notes, usage and title are current. `records`: all from `undoFrom` on, in
 * order; `epochSeq`: where the current epoch begins; `conversation`: an empty one.
 */
export function undone<M>(
  records: Iterable<JournalRecord>,
  epochSeq: number,
  conversation: Conversation<M>,
): EarlierConversation<M> {
  const before = new Set<string>();
  const add = (record: JournalRecord): void => {
    if (record.seq === epochSeq) for (const { entry } of conversation.items) before.add(entry.id);
    // They are skipped, not missing: no tool start was lost with them.
    const isPassedOver = record.seq === epochSeq || (record.seq > epochSeq && record["carried"] === true);
    conversation.add(isPassedOver ? { ...record, kind: PASSED_OVER, must: false } : record);
  };
  for (const record of records) add(record);
  return { conversation, before, add };
}

const PASSED_OVER = "passed-over";

/** The records of the epoch that restores it. Reasoning signed since then was signed over another past (R1). */
export function undoRecords<M>(
  { conversation, before }: EarlierConversation<M>,
  by: Pick<ReplaceOptions, "activity" | "intents">,
  newId: () => string,
): SessionRecord[] {
  const since = conversation.items.find(({ entry }) => !before.has(entry.id));
  const options = { ...by, reason: "rewind", changedFrom: since?.entry.id ?? null } as const;
  return replacement(
    conversation,
    conversation.items.map(({ entry }) => toGiven(entry)),
    options,
    newId,
  );
}
