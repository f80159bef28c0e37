import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, type JournalRecord } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { place, treeOf } from "../place.ts";
import { readSession } from "./independent-reader.ts";

/** P10: journals of every released format, and damaged ones, are still read, or refused with the right code. */

const ID = "01a1dd00-0000-7000-8000-000000000001";
const CORPUS = import.meta.dirname;
const names = ["1.0", "1.1"].flatMap((version) =>
  readdirSync(join(CORPUS, version))
    .sort()
    .map((name) => join(version, name)),
);

interface Expected {
  readonly refused?: string;
  readonly records: readonly (readonly [seq: number, kind: string, crc: string])[];
  readonly epoch: readonly number[];
  readonly torn: { readonly segment: string; readonly offset: number } | null;
  readonly damaged: readonly object[];
  readonly missing: readonly object[];
  readonly next: number;
  readonly closed: boolean;
}

const expectedOf = (name: string): Expected =>
  JSON.parse(readFileSync(join(CORPUS, name, "expected.json"), "utf8")) as Expected;

/** A store of its own with a copy of the session: opening may heal it. */
function storeWith(name: string, root: string): Promise<JournalStore> {
  mkdirSync(join(root, "sessions"), { recursive: true });
  cpSync(join(CORPUS, name), join(root, "sessions", ID), { recursive: true });
  return openFolderStore(root, { catalogue: false });
}

async function all(records: AsyncIterable<JournalRecord>): Promise<JournalRecord[]> {
  const found: JournalRecord[] = [];
  for await (const record of records) found.push(record);
  return found;
}

const key = ({ seq, kind, crc }: { seq: number; kind: string; crc: string }) => [seq, kind, crc];

test("the corpus is there", () => expect(names.length).toBeGreaterThanOrEqual(39));

describe("the store", () => {
  test.each(names)("%s", async (name) => {
    using here = place();
    const expected = expectedOf(name);
    await using store = await storeWith(name, here.path);
    const before = treeOf(join(here.path, "sessions"));
    if (expected.refused) {
      for (const look of [store.read(ID), store.verify(ID), store.open(ID), all(store.history(ID))]) {
        const error = await look.catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(HoldfastError);
        expect((error as HoldfastError).code).toBe(expected.refused);
      }
      expect(treeOf(join(here.path, "sessions")), "and nothing was written").toEqual(before);
      return;
    }
    expect((await all(store.history(ID))).map(key)).toEqual(expected.records);
    expect((await store.read(ID)).records.map(({ seq }) => seq)).toEqual(expected.epoch);
    const verified = await store.verify(ID);
    expect(verified).toMatchObject({ damaged: expected.damaged, missing: expected.missing, unclean: !expected.closed });
    expect(verified.cutBytes > 0).toBe(expected.torn !== null);
    expect(treeOf(join(here.path, "sessions")), "readers heal nothing").toEqual(before);

    const { journal, records } = await store.open(ID);
    expect(records.map(({ seq }) => seq)).toEqual(expected.epoch);
    await journal.append({ kind: "message", text: "and it goes on" });
    await journal.close();
    const reopened = (await all(store.history(ID))).map(key);
    expect(reopened.slice(0, expected.records.length)).toEqual(expected.records);
    expect(reopened[expected.records.length]?.[0]).toBe(expected.next);
    expect(
      reopened
        .slice(expected.records.length)
        .map(([, kind]) => kind)
        .filter((kind) => kind !== "segment"),
    ).toEqual(["opened", "message", "closed"]);
  });
});

describe("a reader written from FORMAT.md alone reads the same", () => {
  test.each(names)("%s", (name) => {
    const expected = expectedOf(name);
    if (expected.refused) {
      expect(() => readSession(join(CORPUS, name))).toThrow(/newer format/);
      return;
    }
    const { records, epoch, torn, damaged, missing, next, closed } = readSession(join(CORPUS, name));
    expect({ records: records.map(key), epoch, torn, damaged, missing, next, closed }).toEqual({ ...expected });
  });
});

test("and what the store writes today", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { segmentBytesMax: 4000 });
  const journal = await store.create(ID, [{ kind: "session", title: "today" }]);
  for (let i = 0; i < 40; i++)
    await journal.append(
      [
        { kind: "message", i },
        { kind: "note", text: "é🙂".repeat(i) },
      ],
      { key: `k${i}` },
    );
  await journal.epoch(() => [
    { kind: "epoch", reason: "compaction" },
    { kind: "message", carried: true },
  ]);
  await journal.append({ kind: "message" });
  await journal.close();
  const records = (await all(store.history(ID))).map(key);
  await store.pack(ID);
  const folder = join(here.path, "sessions", ID);
  expect(readdirSync(folder).some((name) => name.endsWith(".zst"))).toBe(true);
  const reading = readSession(folder);
  expect(reading.records.map(key)).toEqual(records);
  expect(reading).toMatchObject({ torn: null, damaged: [], missing: [], closed: true, next: records.length + 1 });
});
