import type { Conversation } from "../conversation/conversation.ts";
import type { SessionRecord } from "../conversation/records.ts";
import { HoldfastError } from "../errors.ts";
import type { JournalRecord } from "../journal/record.ts";
import { type ReplaceOptions, replacement } from "./epoch.ts";
import { asRecorded } from "./retained.ts";

/** The seq of the first record of the epoch before: from there on, `undone` needs all records. Throws UNDO_TOO_LATE. */
export function undoFrom<M>({ undo }: Conversation<M>): number {
  if (undo !== null) return undo;
  const message =
    "There is no replacement to undo: there was none, a turn was started or resumed since, or it was undone already. Nothing was changed. " +
    "What was there before is in the journal: `follow` reads it, and `replace` takes it.";
  throw new HoldfastError("UNDO_TOO_LATE", message);
}

/** The conversation as it would be without the last replacement. */
export interface Undone<M> {
  readonly conversation: Conversation<M>;
  /** The ids of the entries that were there before the replacement. */
  readonly before: ReadonlySet<string>;
  /** A record that was written meanwhile. */
  add(record: JournalRecord): void;
}

/**
 * Folded from the records of the epoch before, and from what was recorded since: all but the epoch's beginning. So nothing that was recorded since is lost, and queue, notes, usage and title
 * are the current ones. `records`: all from `undoFrom` on, in order; `epochSeq`: where the current epoch begins; `conversation`: an empty one.
 */
export function undone<M>(
  records: Iterable<JournalRecord>,
  epochSeq: number,
  conversation: Conversation<M>,
): Undone<M> {
  const before = new Set<string>();
  const add = (record: JournalRecord): void => {
    if (record.seq === epochSeq) for (const { entry } of conversation.items) before.add(entry.id);
    // They are passed over, not missing: no start of a tool was lost with them.
    const isPassedOver = record.seq === epochSeq || (record.seq > epochSeq && record["carried"] === true);
    conversation.add(isPassedOver ? { ...record, kind: PASSED_OVER, must: false } : record);
  };
  for (const record of records) add(record);
  return { conversation, before, add };
}

const PASSED_OVER = "passed-over";

/** The records of the epoch that brings it back. What the model signed since, it signed over another past (R1). */
export function undoRecords<M>(
  { conversation, before }: Undone<M>,
  by: Pick<ReplaceOptions, "activity" | "intents">,
  newId: () => string,
): SessionRecord[] {
  const since = conversation.items.find(({ entry }) => !before.has(entry.id));
  const options = { ...by, reason: "rewind", changedFrom: since?.entry.id ?? null } as const;
  return replacement(
    conversation,
    conversation.items.map(({ entry }) => asRecorded(entry)),
    options,
    newId,
  );
}
