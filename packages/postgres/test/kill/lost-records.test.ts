import { newId } from "holdfast";
import type { Journal, JournalStore } from "holdfast/store";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";

let server: Server;
let store: JournalStore;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());
beforeEach(async () => {
  const opened = await openPostgresStore(server.url, { monthsAhead: 0, durability: "process" });
  store = opened;
  onTestFinished(() => opened.close().catch(() => undefined));
});

/**
 * The server crashes after `work`, and loses what nobody had waited for: the process that writes that in the background
 * is stopped meanwhile.
 */
async function losing<T>(work: () => Promise<T>): Promise<T> {
  const [writer] = await server.query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
  const pid = Number(writer!["pid"]);
  process.kill(pid, "SIGSTOP");
  const result = await work();
  const back = server.crash();
  process.kill(pid, "SIGKILL");
  await back;
  return result;
}

async function headInDatabase(journal: Journal): Promise<number> {
  const [row] = await server.query("SELECT head FROM holdfast.heads WHERE id = $1", [journal.id]);
  return Number(row!["head"]);
}

describe("the server crashes, and acknowledged records of `process` are gone", () => {
  const journalOf = () => store.create(newId(), [{ kind: "note" }]);
  const LOST = { code: "FILE_REPLACED", facts: { expected: 4, found: 2 } };

  /** Records 3 and 4 (`opened`, and this one) are lost. */
  async function loseAppend(journal: Journal, key?: string): Promise<void> {
    await losing(() => journal.append({ kind: "note" }, key === undefined ? {} : { key }));
    expect(await headInDatabase(journal)).toBe(2);
  }

  test("flush says so, and so does everything after it", async () => {
    const journal = await journalOf();
    await loseAppend(journal);
    await expect(journal.flush()).rejects.toMatchObject(LOST);
    await expect(journal.append({ kind: "note" })).rejects.toMatchObject(LOST);
    await journal.close();
    const { journal: again, records } = await store.open(journal.id);
    expect(records).toHaveLength(2);
    await again.append({ kind: "note" });
    await again.flush();
    await again.close();
  });

  test("a repeated append that asks for `power` says so", async () => {
    const journal = await journalOf();
    await loseAppend(journal, "k");
    await expect(journal.append({ kind: "note" }, { key: "k", durability: "power" })).rejects.toMatchObject(LOST);
  });

  test("closing says so", async () => {
    const journal = await journalOf();
    await loseAppend(journal);
    await expect(journal.close()).rejects.toMatchObject(LOST);
  });

  test("a writer that does nothing more is told, and lists show what is there", async () => {
    const journal = await journalOf();
    const failed = new Promise((resolve) => journal.onFailure(resolve));
    await loseAppend(journal);
    expect(await failed).toMatchObject(LOST);
    expect((await store.list()).sessions.find(({ id }) => id === journal.id)).toMatchObject({ head: 2 });
  });

  test("a writer that has lost nothing continues", async () => {
    const journal = await journalOf();
    await losing(() => journal.append({ kind: "note" }, { durability: "power" }));
    await journal.append({ kind: "note" });
    await journal.flush();
    expect([journal.durable, await headInDatabase(journal)]).toEqual([5, 5]);
  });
});

test("a fail-over or a restore has taken what was acknowledged as `power`: confirming it again says so", async () => {
  const confirming: ((journal: Journal) => Promise<unknown>)[] = [
    (journal) => journal.flush(),
    (journal) => journal.append({ kind: "note" }, { key: "k", durability: "power" }),
    (journal) => journal.epoch(() => [{ kind: "epoch" }], { key: "e" }),
  ];
  for (const confirm of confirming) {
    const journal = await store.create(newId(), [{ kind: "note" }]);
    await journal.append({ kind: "note" }, { key: "k", durability: "power" });
    await journal.epoch(() => [{ kind: "epoch" }], { key: "e" });
    await confirm(journal);
    expect(journal.durable).toBe(journal.head);
    await server.query("UPDATE holdfast.heads SET head = 2 WHERE id = $1", [journal.id]);
    await expect(confirm(journal)).rejects.toMatchObject({ code: "FILE_REPLACED", facts: { found: 2 } });
    await journal.close();
  }
});

test("the same for a writer that has only read what was taken", async () => {
  const confirming: ((journal: Journal) => Promise<unknown>)[] = [
    (journal) => journal.flush(),
    (journal) => journal.append({ kind: "note" }, { key: "k", durability: "power" }),
  ];
  for (const confirm of confirming) {
    const id = newId();
    const first = await store.create(id, [{ kind: "note" }]);
    await first.append({ kind: "note" }, { key: "k", durability: "power" });
    await first.close();
    const { journal } = await store.open(id);
    await confirm(journal);
    await server.query("UPDATE holdfast.heads SET head = 2 WHERE id = $1", [id]);
    await expect(confirm(journal)).rejects.toMatchObject({ code: "FILE_REPLACED", facts: { found: 2 } });
    await journal.close();
  }
});
