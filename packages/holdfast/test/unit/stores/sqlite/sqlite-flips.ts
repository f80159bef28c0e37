import { rmSync, writeFileSync } from "node:fs";
import { isHoldfastError, type JournalRecord, type Store } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { type JournalStore, openStoreWith } from "holdfast/store";

/** A session as it was before a bit was flipped. */
export interface Known {
  readonly id: string;
  /** A word that stands in no other session. */
  readonly word: string;
  readonly messages: string;
  /** Every record of the journal, and the seq that the current epoch begins with. */
  readonly records: readonly JournalRecord[];
  readonly from: number;
}

/** What was wrong with how a store dealt with a damaged file; empty if all was right. */
export type Faults = string[];

/** Long enough for a follower that waits for what never comes. */
const FOLLOW_MS = 400;

/**
 * Looks at a store whose file has one bit flipped, from all sides. Whatever the bit is part of: every error is a typed
 * one; no session shows under another id, or with records of another; nothing that is missing goes unsaid; and the
 * sessions that are not affected go on.
 */
export async function examine(file: string, bytes: Buffer, known: readonly Known[]): Promise<Faults> {
  for (const ending of ["-wal", "-shm", "-search", "-search-wal", "-search-shm"])
    rmSync(file + ending, { force: true });
  writeFileSync(file, bytes);
  const faults: Faults = [];
  const opened = await typed(faults, "open the store", () => openBoth(file));
  if (!opened) return faults;
  const { store, journals } = opened;
  try {
    const reported = await examineSessions(faults, store, journals, known);
    await examineLists(faults, store, journals, known);
    await examineWriting(faults, store, journals, known, reported);
  } finally {
    await typed(faults, "close the store", () => store.close());
  }
  return faults;
}

async function openBoth(file: string): Promise<{ readonly store: Store; readonly journals: JournalStore }> {
  let journals: JournalStore | undefined;
  const store = await openStoreWith(async (options) => {
    journals = await openSqliteStore(file, { ...options, durability: "process" });
    return journals;
  });
  return { store, journals: journals! };
}

/** The result, or null if it was refused with a typed error. */
async function typed<T>(faults: Faults, what: string, work: () => Promise<T> | T, notFound = false): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (!isHoldfastError(error)) faults.push(`${what}: a raw error: ${error instanceof Error ? error.stack : error}`);
    else if (error.code === "SESSION_NOT_FOUND" && !notFound) faults.push(`${what}: SESSION_NOT_FOUND`);
    return null;
  }
}

/** Reads each session in every way. Returns those of which it was said that something is wrong. */
async function examineSessions(
  faults: Faults,
  store: Store,
  journals: JournalStore,
  known: readonly Known[],
): Promise<Set<string>> {
  const reported = new Set<string>();
  for (const one of known) {
    const { id } = one;
    const at = `session ${one.word}`;
    const verified = await typed(faults, `${at}: verify`, () => store.verify(id));
    if (!verified || verified.damaged.length > 0 || verified.missing.length > 0) reported.add(id);
    const isSaid = reported.has(id);
    if ((await typed(faults, `${at}: has`, () => store.has(id))) === false) faults.push(`${at}: has says no`);

    const snapshot = await typed(faults, `${at}: read`, () => journals.read(id));
    if (snapshot) {
      const { damaged, missing } = snapshot.recovery;
      const current = one.records.filter(({ seq }) => seq >= one.from);
      compare(faults, `${at}: read`, snapshot.records, current, damaged.length + missing.length > 0);
    } else if (!isSaid) faults.push(`${at}: cannot be read, and verify finds nothing`);
    const reading = await typed(faults, `${at}: read the conversation`, () => store.read(id));
    if (reading && !isSaid && JSON.stringify(reading.messages) !== one.messages)
      faults.push(`${at}: another conversation, and verify finds nothing`);

    const history = await typed(faults, `${at}: history`, () => all(store.history(id)));
    if (history) compare(faults, `${at}: history`, history, one.records, isSaid);
    const followed = await typed(faults, `${at}: follow`, () => followToEnd(store, id, one.records.at(-1)!.seq));
    if (followed) compare(faults, `${at}: follow`, followed, one.records, isSaid);
  }
  return reported;
}

function compare(
  faults: Faults,
  what: string,
  found: readonly JournalRecord[],
  expected: readonly JournalRecord[],
  isSaid: boolean,
): void {
  const own = new Map(expected.map((record) => [record.seq, record.crc]));
  for (const { seq, crc } of found) if (own.get(seq) !== crc) faults.push(`${what}: record ${seq} is not its own`);
  for (const [i, { seq }] of found.entries())
    if (i > 0 && seq <= found[i - 1]!.seq) faults.push(`${what}: record ${seq} is out of order`);
  if (!isSaid && found.length < expected.length)
    faults.push(`${what}: ${expected.length - found.length} records are missing, and nobody says so`);
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function followToEnd(store: Store, id: string, last: number): Promise<JournalRecord[]> {
  const enough = new AbortController();
  const timer = setTimeout(() => enough.abort(), FOLLOW_MS);
  try {
    const found: JournalRecord[] = [];
    for await (const record of store.follow(id, undefined, { signal: enough.signal })) {
      found.push(record);
      if (record.seq >= last) break;
    }
    return found;
  } finally {
    clearTimeout(timer);
  }
}

async function examineLists(
  faults: Faults,
  store: Store,
  journals: JournalStore,
  known: readonly Known[],
): Promise<void> {
  const ids = new Set(known.map(({ id }) => id));
  for (const [what, list] of [
    ["list", () => store.list({ empty: true })],
    ["list of the journals", () => journals.list()],
    ["list by pages", () => pages(journals)],
  ] as const) {
    const page = await typed(faults, what, list as () => Promise<{ sessions: readonly { readonly id: string }[] }>);
    if (!page) continue;
    const listed = page.sessions.map(({ id }) => id);
    for (const id of listed) if (!ids.has(id)) faults.push(`${what}: a stranger, ${JSON.stringify(id)}`);
    for (const { id, word } of known) {
      const times = listed.filter((one) => one === id).length;
      if (times !== 1) faults.push(`${what}: session ${word} is listed ${times} times`);
    }
  }
  for (const { id, word } of known) {
    const hits = await typed(faults, `search ${word}`, () => all(store.search(word)));
    for (const hit of hits ?? [])
      if (hit.session !== id) faults.push(`search ${word}: found in ${JSON.stringify(hit.session)}`);
  }
}

async function pages(journals: JournalStore): Promise<{ sessions: readonly { readonly id: string }[] }> {
  const sessions: { readonly id: string }[] = [];
  let after: string | undefined;
  do {
    const page = await journals.list({ limit: 2, ...(after === undefined ? {} : { after }) });
    sessions.push(...page.sessions);
    after = page.next;
    if (sessions.length > 100) throw new Error("the pages do not end");
  } while (after !== undefined);
  return { sessions };
}

/** Appends to each session, throws the garbage away, and reads back. */
async function examineWriting(
  faults: Faults,
  store: Store,
  journals: JournalStore,
  known: readonly Known[],
  reported: ReadonlySet<string>,
): Promise<void> {
  await typed(faults, "gc", () => store.gc({ graceMs: 0 }));
  for (const { id, word, records } of known) {
    const at = `session ${word}`;
    const appended = await typed(faults, `${at}: append`, async () => {
      const { journal } = await journals.open(id);
      try {
        const { seq } = await journal.append({ kind: "note", text: `added to ${word}` });
        await journal.flush();
        return seq;
      } finally {
        await typed(faults, `${at}: close`, () => journal.close());
      }
    });
    const found = await typed(faults, `${at}: read again`, () => all(store.history(id)));
    if (!found) continue;
    const old = found.filter(({ seq }) => seq <= records.at(-1)!.seq);
    compare(faults, `${at}: read again`, old, records, reported.has(id));
    const added = found.filter((record) => record["text"] === `added to ${word}`);
    if (appended !== null && added.length !== 1 && !reported.has(id))
      faults.push(`${at}: what was appended is there ${added.length} times`);
    if (appended !== null && appended <= records.at(-1)!.seq) faults.push(`${at}: seq ${appended} was used again`);
  }
}
