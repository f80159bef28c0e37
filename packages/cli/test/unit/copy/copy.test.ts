import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type JournalRecord, newId } from "holdfast";
import { openFolderStore, openMemoryStore, openSqliteStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { type CopyResult, copySession } from "../../../src/copy/copy.ts";

class Place implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), "holdfast-copy-"));
  readonly #open: JournalStore[] = [];

  async folder(name: string): Promise<JournalStore> {
    return this.#keep(await openFolderStore(join(this.path, name), { durability: "process", segmentBytesMax: 4096 }));
  }

  async sqlite(name: string): Promise<JournalStore> {
    return this.#keep(await openSqliteStore(join(this.path, name), { durability: "process" }));
  }

  async memory(): Promise<JournalStore> {
    return this.#keep(await openMemoryStore());
  }

  /** The segments of a session in a folder store, by name. */
  files(store: string, id: string): Map<string, string> {
    const folder = join(this.path, store, "sessions", id);
    return new Map(
      readdirSync(folder)
        .sort()
        .map((name) => [name, readFileSync(join(folder, name), "latin1")]),
    );
  }

  #keep(store: JournalStore): JournalStore {
    this.#open.push(store);
    return store;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#open) await store.close();
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Some segments, two epochs, and what text can be. */
async function written(store: JournalStore, { close = true }: { close?: boolean } = {}): Promise<string> {
  const id = newId();
  const journal = await store.create(id, [{ kind: "note", text: "begin" }]);
  for (let i = 0; i < 60; i++)
    await journal.append({ kind: "note", text: `${i} ü 東京 \u0000 \ud800 ${"x".repeat(200)}` });
  await journal.append(
    [
      { kind: "note", text: "a unit" },
      { kind: "note", n: -0, x: 1e300, y: [0.1, null] },
    ],
    { key: "k" },
  );
  await journal.epoch(() => [
    { kind: "epoch", reason: "test" },
    { kind: "note", text: "carried" },
  ]);
  await journal.append({ kind: "note", text: "end" });
  if (close) await journal.close();
  return id;
}

function copy(from: JournalStore, to: JournalStore, id: string, move = false): Promise<CopyResult> {
  return copySession(from, to, id, { move, onProgress: () => undefined });
}

const all = (records: AsyncIterable<JournalRecord>): Promise<JournalRecord[]> => Array.fromAsync(records);

describe("copy", () => {
  test("from a folder, through SQLite and memory, and back to a folder: the same files, byte for byte", async () => {
    await using place = new Place();
    const stores = [await place.folder("a"), await place.sqlite("b"), await place.memory(), await place.folder("c")];
    const id = await written(stores[0]!);
    const records = await all(stores[0]!.history(id));
    for (const [index, to] of stores.slice(1).entries()) {
      const copied = await copy(stores[index]!, to, id);
      expect(copied).toEqual({
        id,
        outcome: "copied",
        records: records.length,
        head: records.length,
        live: false,
        gaps: [],
        moved: false,
      });
      expect(await all(to.history(id))).toEqual(records);
    }
    expect(place.files("a", id).size).toBeGreaterThan(3);
    expect(place.files("c", id)).toEqual(place.files("a", id));
    const { journal, recovery } = await stores[3]!.open(id);
    expect(recovery).toMatchObject({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
    expect(journal.head).toBe(records.length);
  });

  test("again: what is there is verified, what has fewer records is replaced, what is another stays", async () => {
    await using place = new Place();
    const from = await place.folder("a");
    const to = await place.sqlite("b");
    const id = await written(from);
    await copy(from, to, id);
    expect(await copy(from, to, id)).toMatchObject({ outcome: "there" });
    const { journal } = await from.open(id);
    await journal.append({ kind: "note", text: "more" });
    await journal.close();
    expect(await copy(from, to, id)).toMatchObject({ outcome: "completed", head: journal.head });
    expect(await all(to.history(id))).toEqual(await all(from.history(id)));
    const { journal: other } = await to.open(id);
    await other.append({ kind: "note", text: "gone on" });
    await other.close();
    await expect(copy(from, to, id)).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    expect(await all(to.history(id))).toContainEqual(expect.objectContaining({ text: "gone on" }));
  });

  test("one that is being written to is copied up to its end as it is, and completed later; it is never removed", async () => {
    await using place = new Place();
    const from = await place.folder("a");
    const to = await place.folder("b");
    const id = await written(from);
    const { journal } = await from.open(id);
    await journal.append({ kind: "note", text: "live" });
    const head = journal.head;
    expect(await copy(from, to, id, true)).toMatchObject({ live: true, head, moved: false, kept: "in use" });
    expect((await to.read(id)).recovery.unclean).toBe(true);
    await journal.append({ kind: "note", text: "later" });
    await journal.close();
    expect(await copy(from, to, id, true)).toMatchObject({ outcome: "completed", live: false, moved: true });
    expect(await from.has(id)).toBe(false);
    expect((await to.read(id)).recovery.unclean).toBe(false);
  });

  test("what fails in the middle leaves nothing to be seen, and the next one goes through", async () => {
    await using place = new Place();
    const from = await place.folder("a");
    const id = await written(from);
    const away: JournalStore = new Proxy(from, {
      get(target, name) {
        if (name === "history")
          return async function* (of: string) {
            let count = 0;
            for await (const record of target.history(of)) {
              if (++count === 40) throw new Error("the source is away");
              yield record;
            }
          };
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    for (const to of [await place.folder("b"), await place.sqlite("c"), await place.memory()]) {
      await expect(copy(away, to, id)).rejects.toThrow("the source is away");
      expect(await to.has(id)).toBe(false);
      expect((await to.list()).sessions).toEqual([]);
      expect(await copy(from, to, id)).toMatchObject({ outcome: "copied" });
    }
  });

  test("damage is said, and what is damaged is not removed", async () => {
    await using place = new Place();
    const from = await place.folder("a");
    const to = await place.sqlite("b");
    const id = await written(from);
    const [name, text] = [...place.files("a", id)][1]!;
    const at = text.indexOf("\n", 600) + 40;
    writeFileSync(join(place.path, "a", "sessions", id, name), `${text.slice(0, at)}#${text.slice(at + 1)}`, "latin1");
    const { gaps, kept, moved } = await copy(from, to, id, true);
    expect(gaps).toHaveLength(1);
    expect([moved, kept]).toEqual([false, "damaged"]);
    expect(await from.has(id)).toBe(true);
    expect((await to.verify(id)).missing).toEqual(gaps);
    expect(await copy(from, to, id)).toMatchObject({ outcome: "there" });
  });

  test("a record that another program wrote in another form is refused, not changed", async () => {
    await using place = new Place();
    const from = await place.memory();
    const id = newId();
    const journal = await from.create(id, []);
    await journal.append({ kind: "note", 7: "a name that JavaScript puts first" });
    await journal.close();
    await expect(copy(from, await place.folder("b"), id)).rejects.toMatchObject({ code: "RECORD_INVALID" });
  });
});
