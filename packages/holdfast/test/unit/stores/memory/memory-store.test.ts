import { expect, test } from "vitest";
import { type HoldfastError, newId } from "../../../../src/index.ts";
import { Memory, openMemoryStore } from "../../../../src/internal.ts";

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "went well",
    (error: HoldfastError) => error.code,
  );
}

async function twoNotes() {
  const memory = new Memory();
  const store = await openMemoryStore({ memory });
  const id = newId();
  const journal = await store.create(id, [{ kind: "note", text: "a" }]);
  await journal.append({ kind: "note", text: "b" });
  return { memory, store, id, journal, session: memory.sessions.get(id)! };
}

test("each store has a memory of its own, unless one is given", async () => {
  const { memory, id } = await twoNotes();
  expect(await (await openMemoryStore()).has(id)).toBe(false);
  expect(await (await openMemoryStore({ memory })).has(id)).toBe(true);
});

test("P9: a damaged line costs that record, is reported with its place, and its seq is not used again", async () => {
  const { store, id, journal, session } = await twoNotes();
  await journal.epoch(() => [{ kind: "epoch" }, { kind: "note", text: "c" }]);
  await journal.append({ kind: "note", text: "d" });
  await journal.close();
  const line = session.lines[6]!;
  line[30]! ^= 1;
  const { records, recovery } = await store.read(id);
  expect(records.map((record) => record.seq)).toEqual([5, 6, 8, 9]);
  const offset = session.lines[4]!.length + session.lines[5]!.length;
  expect(recovery.damaged).toEqual([{ segment: "000002", offset, bytes: line.length, seq: 7, why: "corrupt" }]);
  expect((await store.verify(id)).damaged).toEqual(recovery.damaged);
  const opened = await store.open(id);
  expect(opened.recovery).toEqual(recovery);
  expect((await opened.journal.append({ kind: "note", text: "e" })).seq).toBe(11);
});

test("P9: a damaged last line does not hide the session", async () => {
  const { store, id, journal, session } = await twoNotes();
  await journal.close();
  session.lines.at(-1)![20]! ^= 1;
  expect((await store.list()).sessions).toMatchObject([{ id, head: 5, closed: false }]);
  expect((await store.open(id)).recovery.unclean).toBe(true);
});

test("a crash leaves what was written, and what was in flight in doubt", async () => {
  const { memory, store, id, journal } = await twoNotes();
  const told: string[] = [];
  journal.onFailure((error) => told.push(error.code));
  const stopped = journal.onFailure(() => told.push("not this one"));
  stopped();
  const inFlight = journal.append({ kind: "note", text: "in doubt" });
  memory.crash(id);
  expect(told).toEqual(["LEASE_LOST"]);
  expect(journal.failure?.code).toBe("LEASE_LOST");
  expect(await codeOf(inFlight)).toBe("LEASE_LOST");
  expect(await codeOf(journal.append({ kind: "note" }))).toBe("LEASE_LOST");
  expect(await codeOf(journal.flush())).toBe("LEASE_LOST");
  expect(await codeOf(journal.epoch(() => [{ kind: "epoch" }]))).toBe("LEASE_LOST");
  const { records, recovery } = await store.open(id);
  expect(records.at(-1)).toMatchObject({ kind: "note", text: "in doubt" });
  expect(recovery.unclean).toBe(true);
  expect(await codeOf(journal.close())).toBe("LEASE_LOST");
  await store.close();
});

test("an epoch whose first record is no `epoch`, and an append without records, are refused", async () => {
  const { store, id, journal } = await twoNotes();
  expect(await codeOf(journal.epoch(() => []))).toBe("RECORD_INVALID");
  expect(await codeOf(journal.epoch(() => [{ kind: "note" }]))).toBe("RECORD_INVALID");
  expect(await codeOf(journal.append([]))).toBe("RECORD_INVALID");
  expect((await store.read(id)).records).toHaveLength(4);
});

test("every call of close waits until the journals are closed", async () => {
  const { memory, store, id } = await twoNotes();
  const first = store.close();
  await store.close();
  const { recovery } = await (await openMemoryStore({ memory })).open(id);
  expect(recovery.unclean).toBe(false);
  await first;
});
