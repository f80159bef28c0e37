// Reads a session folder twice: by the store, and by the reader that was written from FORMAT.md alone. "§" cites that
// page.
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { HoldfastError, type JournalRecord } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { place } from "../place.ts";
import { readSession } from "./independent-reader.ts";
import { type Folder, SESSION } from "./random-folders.ts";

/** What a reader makes of a session folder. */
export type Reading =
  | { readonly refused: string }
  | {
      /** Of all epochs: seq, kind and crc. */
      readonly records: readonly string[];
      /** The seqs of the current one. */
      readonly epoch: readonly number[];
      readonly damaged: readonly Damaged[];
      readonly missing: readonly { readonly from: number; readonly to: number }[];
      readonly isTorn: boolean;
      readonly isClosed: boolean;
      /** What the next record's seq is, unless the store does not write to this session. */
      readonly next?: number;
    };
interface Damaged {
  readonly segment: string;
  readonly offset: number;
  readonly bytes: number;
  readonly seq?: number;
}

export interface Readings {
  readonly when: string;
  readonly second: Reading;
  readonly store: Reading;
}

const keyOf = ({ seq, kind, crc }: { seq: number; kind: string; crc: string }) => `${seq} ${kind} ${crc}`;

/**
 * Reads a folder in both ways: as it is, with records that the store has appended to a copy, and with older epochs
 * packed.
 */
export async function readTwice(folder: Folder): Promise<Readings[]> {
  using here = place();
  const original = join(here.path, "original");
  const path = join(original, "sessions", SESSION);
  for (const [name, bytes] of folder) {
    mkdirSync(dirname(join(path, name)), { recursive: true, mode: 0o700 });
    writeFileSync(join(path, name), bytes, { mode: 0o600 });
  }
  const before = { when: "as it is", ...(await bothReadings(original)) };
  if ("refused" in before.second || "refused" in before.store) return [before];

  const copy = join(here.path, "copy");
  cpSync(original, copy, { recursive: true, filter: (name) => !name.startsWith(join(original, "leases")) });
  const readings: Readings[] = [];
  // The store does not go on behind a packed segment (JOURNAL_UNREADABLE), and no writer leaves one at the end (§7).
  if (newestOf(folder).endsWith(".zst")) readings.push(before);
  else {
    await appendTo(copy);
    const after = await bothReadings(copy);
    const store = { ...before.store, next: firstNewSeq(after.store, folder) };
    readings.push({ ...before, second: { ...before.second, next: readSession(path).next }, store });
    readings.push({ when: "after an append", ...after });
  }
  await using store = await openFolderStore(copy, { catalogue: false });
  const records = await keysOf(store.history(SESSION));
  await store.pack(SESSION);
  const packed = await bothReadings(copy);
  if (!("refused" in packed.store)) {
    const kept = { ...packed.store, records };
    readings.push({ when: "packing changes no record", second: kept, store: packed.store });
  }
  return [...readings, { when: "packed", ...packed }];
}

/** The name of the newest segment: of one that is there twice, the plain one. */
const newestOf = (folder: Folder): string =>
  [...folder.keys()]
    .filter((name) => /^\d{6}\.jsonl(\.zst)?$/.test(name))
    .sort()
    .findLast((name) => !folder.has(name.replace(".zst", "")) || !name.endsWith(".zst"))!;

async function bothReadings(root: string): Promise<Pick<Readings, "second" | "store">> {
  await using store = await openFolderStore(root, { catalogue: false });
  return { second: readBySecond(join(root, "sessions", SESSION)), store: await readByStore(store) };
}

async function appendTo(root: string): Promise<void> {
  await using store = await openFolderStore(root, { catalogue: false });
  const { journal } = await store.open(SESSION);
  await journal.append({ kind: "message", text: "and it goes on" });
  await journal.close();
}

/**
 * The seq of the first record that was appended: `opened`, or the header before it. It need not stand right behind the
 * old records, since a new segment may bring some to life that did not count before (§4, N).
 */
function firstNewSeq(after: Reading, folder: Folder): number {
  const keys = "refused" in after ? [] : after.records;
  const opened = keys.findLastIndex((key) => key.includes(" opened "));
  const header = keys[opened - 1] ?? "";
  const isNew = header.includes(" segment ") && ![...folder.values()].some((bytes) => bytes.includes(header.slice(-8)));
  return Number.parseInt(keys[isNew ? opened - 1 : opened] ?? "", 10);
}

function readBySecond(path: string): Reading {
  try {
    const { records, epoch, damaged, missing, torn, closed } = readSession(path);
    return {
      records: records.map(keyOf),
      ...{ epoch, damaged, missing: merged(missing), isTorn: torn !== null },
      isClosed: closed,
    };
  } catch (error) {
    if (error instanceof Error && /newer format/.test(error.message)) return { refused: "FORMAT_NEWER" };
    throw error;
  }
}

async function readByStore(store: JournalStore): Promise<Reading> {
  try {
    const records = await keysOf(store.history(SESSION));
    const epoch = (await store.read(SESSION)).records.map(({ seq }) => seq);
    const { damaged, missing, cutBytes, unclean } = await store.verify(SESSION);
    return { records, epoch, damaged, missing: merged(missing), isTorn: cutBytes > 0, isClosed: !unclean };
  } catch (error) {
    if (error instanceof HoldfastError) return { refused: error.code };
    throw error;
  }
}

async function keysOf(records: AsyncIterable<JournalRecord>): Promise<string[]> {
  const keys: string[] = [];
  for await (const record of records) keys.push(keyOf(record));
  return keys;
}

/** The store says in two parts what is missing at the end of one segment and at the beginning of the next. */
function merged(missing: readonly { from: number; to: number }[]): { from: number; to: number }[] {
  const all: { from: number; to: number }[] = [];
  for (const { from, to } of missing) {
    const last = all.at(-1);
    if (last?.to === from - 1) last.to = to;
    else all.push({ from, to });
  }
  return all;
}
