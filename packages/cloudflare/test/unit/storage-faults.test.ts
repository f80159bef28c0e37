import { DatabaseSync } from "node:sqlite";
import { openDurableObjectStore } from "@holdfast/cloudflare";
import { newId } from "holdfast";
import { describe, expect, test } from "vitest";

type Context = Parameters<typeof openDurableObjectStore>[0];
type Row = ReturnType<ReturnType<Context["storage"]["sql"]["exec"]>["toArray"]>[number];

/** A Durable Object's storage on Node's SQLite, which fails on demand. */
class FaultyStorage {
  readonly #database = new DatabaseSync(":memory:");
  /** What the next statement that writes a line reports. */
  refusal: Error | null = null;
  sync = (): Promise<void> => Promise.resolve();
  #depth = 0;

  readonly sql: Context["storage"]["sql"] = {
    exec: (query, ...values) => {
      if (this.refusal && query.includes("INSERT INTO holdfast_lines")) throw this.refusal;
      const rows = this.#run(query, values as string[]);
      return Object.assign(rows.values(), { toArray: () => rows });
    },
  };

  #run(query: string, values: string[]): Row[] {
    if (values.length === 0 && query.includes(";")) {
      this.#database.exec(query);
      return [];
    }
    return this.#database.prepare(query).all(...values) as unknown as Row[];
  }

  transactionSync<T>(work: () => T): T {
    const name = `depth${this.#depth++}`;
    this.#database.exec(`SAVEPOINT ${name}`);
    try {
      const result = work();
      this.#database.exec(`RELEASE ${name}`);
      return result;
    } catch (error) {
      this.#database.exec(`ROLLBACK TO ${name}; RELEASE ${name}`);
      throw error;
    } finally {
      this.#depth--;
    }
  }
}

async function open(): Promise<{
  storage: FaultyStorage;
  ctx: Context;
  store: Awaited<ReturnType<typeof openDurableObjectStore>>;
}> {
  const storage = new FaultyStorage();
  const ctx = { id: "test", storage };
  return { storage, ctx, store: await openDurableObjectStore(ctx) };
}

const note = (text: string) => ({ kind: "note", text });

describe("the storage of the object", () => {
  test("P1: an append resolves only when the object has confirmed the write", async () => {
    const { storage, store } = await open();
    const journal = await store.create(newId(), []);
    let confirm = (): void => {};
    storage.sync = () => new Promise((resolve) => (confirm = resolve));
    let isAcknowledged = false;
    const appended = journal.append(note("a")).then(() => (isAcknowledged = true));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect({ isAcknowledged, durable: journal.durable }).toEqual({ isAcknowledged: false, durable: 1 });
    confirm();
    await appended;
    expect(journal.durable).toBe(3);
  });

  test("P8: a write that is not confirmed is in doubt, and the journal accepts nothing more", async () => {
    const { storage, store } = await open();
    const id = newId();
    const journal = await store.create(id, []);
    storage.sync = () => Promise.reject(new Error("the object was reset"));
    await expect(journal.append(note("a"))).rejects.toMatchObject({ code: "SYNC_FAILED" });
    await expect(journal.append(note("b"))).rejects.toMatchObject({ code: "SYNC_FAILED" });
    await journal.close().catch(() => undefined);
    // The lease is free; what the object did not confirm is not shown either.
    await expect(store.open(id)).rejects.toMatchObject({ code: "SYNC_FAILED" });
    storage.sync = () => Promise.resolve();
    const { recovery } = await store.open(id);
    expect(recovery.unclean).toBe(true);
  });

  test.each([
    ["database or disk is full: SQLITE_FULL", "STORE_FULL"],
    ["disk I/O error: SQLITE_IOERR", "STORE_IO"],
  ])("P8: %s: nothing was written, and the journal stays usable", async (message, code) => {
    const { storage, store } = await open();
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append(note("before"));
    storage.refusal = new Error(message);
    await expect(journal.append([note("a"), note("b")])).rejects.toMatchObject({ code });
    await expect(journal.epoch(() => [{ kind: "epoch", reason: "test" }])).rejects.toMatchObject({ code });
    storage.refusal = null;
    await journal.append(note("after"));
    await journal.close();
    const verification = await store.verify(id);
    expect(verification).toMatchObject({ damaged: [], missing: [], unclean: false, segments: 1 });
    const { records } = await store.read(id);
    expect(records.flatMap(({ kind, text }) => (kind === "note" ? [text] : []))).toEqual(["before", "after"]);
  });

  test("tables of a newer version are refused", async () => {
    const { storage, store } = await open();
    await store.close();
    storage.sql.exec("UPDATE holdfast_schema SET version = 2");
    // The object that is started next.
    const { sql, sync } = storage;
    const next: Context["storage"] = { sql, sync, transactionSync: (work) => storage.transactionSync(work) };
    await expect(openDurableObjectStore({ id: "test", storage: next })).rejects.toMatchObject({ code: "FORMAT_NEWER" });
  });
});
