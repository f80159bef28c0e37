import { setImmediate as breathe } from "node:timers/promises";
import { type HoldfastError, isHoldfastError } from "../errors.ts";
import type { JournalStore } from "../journal/contract.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { TextBehind, TextChange, TextMark } from "../journal/texts.ts";
import { type Base, patiently } from "./base.ts";
import { type DialectNamed, TextReader } from "./texts.ts";

/** The approximate maximum of one transaction: a few milliseconds of work. */
const BATCH_CHARS = 256 * 1024;
const BATCH_RECORDS = 1000;

export interface Source {
  readonly store: Pick<JournalStore, "history">;
  readonly dialectNamed: DialectNamed;
  /** How long to retry while another process is writing to the index. */
  readonly patienceMs: number;
  /** Nobody is waiting for it any more. */
  readonly isOver: () => boolean;
}

/**
 * Does a list show that there is nothing new to read? The time is compared too: after a power cut, other records can
 * have the same seqs.
 */
export function isFresh(mark: TextMark | undefined, { head, at }: TextBehind, dialectNamed: DialectNamed): boolean {
  return mark !== undefined && mark.head === head && mark.at === at && !seesMore(mark, dialectNamed);
}

/** Was it indexed without its dialect, which is known now? */
function seesMore({ blind, dialect }: TextMark, dialectNamed: DialectNamed): boolean {
  return blind && dialect !== null && dialectNamed(dialect) !== null;
}

/** Indexes what is new in a session, in small transactions. Throws IndexFailure, Unread and the store's errors. */
export async function catchUp(source: Source, base: Base, id: string, listed?: TextBehind): Promise<void> {
  const { patienceMs, dialectNamed } = source;
  while (!source.isOver()) {
    const mark = await patiently(patienceMs, () => base.tables.mark(id));
    const outcome = mark && seesMore(mark, dialectNamed) ? "changed" : await readOn(source, base, id, mark, listed);
    if (outcome === "done") return;
    if (outcome === "changed") await patiently(patienceMs, () => base.tables.forget(id));
  }
}

/** The session could not be read: a failure of this session, not of the index or of other sessions. */
export class Unread extends Error {
  override readonly cause: HoldfastError;

  constructor(cause: HoldfastError) {
    super("the session could not be read", { cause });
    this.cause = cause;
  }
}

async function* historyOf(
  store: Source["store"],
  id: string,
  from: number | undefined,
): AsyncGenerator<JournalRecord, void, undefined> {
  try {
    yield* store.history(id, from);
  } catch (error) {
    throw isHoldfastError(error) && !isHoldfastError(error, "STORE_CLOSED") ? new Unread(error) : error;
  }
}

/**
 * `changed`: the journal is no longer the one that was indexed. `overtaken`: another process indexed it in the
 * meantime.
 */
async function readOn(
  source: Source,
  base: Base,
  id: string,
  from: TextMark | null,
  listed: TextBehind | undefined,
): Promise<"done" | "changed" | "overtaken"> {
  const reader = new TextReader(source.dialectNamed, from ?? undefined);
  let mark = from;
  let last = from && { seq: from.seq, crc: from.crc, at: from.at };
  let known = from === null;
  let changes: TextChange[] = [];
  let chars = 0;
  let records = 0;
  const commit = async (head: number, at: string): Promise<boolean> => {
    const { dialect, blind, cut } = reader;
    const next = { seq: last!.seq, crc: last!.crc, head, at, dialect, blind, cut };
    const added = await patiently(source.patienceMs, () => base.tables.add(id, mark, changes, next));
    mark = next;
    changes = [];
    chars = 0;
    records = 0;
    return added;
  };

  for await (const record of historyOf(source.store, id, from?.seq)) {
    if (!known) {
      // If the last indexed record is still there, so is everything before it.
      if (record.seq !== from?.seq || record.crc !== from.crc) return "changed";
      known = true;
      continue;
    }
    const change = reader.read(record);
    if (change) changes.push(change);
    if (change?.kind === "message") chars += change.text.length;
    last = { seq: record.seq, crc: record.crc, at: record.at };
    if (++records < BATCH_RECORDS && chars < BATCH_CHARS) continue;
    if (!(await commit(last.seq, last.at))) return "overtaken";
    await breathe();
    if (source.isOver()) return "done";
  }
  if (!known) return "changed";
  if (!last) return "done";
  const end = listed && last.seq <= listed.head ? listed : { head: last.seq, at: last.at };
  if (records === 0 && mark?.head === end.head && mark.at === end.at) return "done";
  return (await commit(end.head, end.at)) ? "done" : "overtaken";
}
