import assert from "node:assert/strict";
import { type HoldfastError, idFrom, newId } from "holdfast";
import { lineOf } from "holdfast/internal";
import type { VerbatimLine } from "holdfast/store";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, kindsOf, note, notes, seqsOf, textsOf } from "../notes.ts";
import { all, refusal } from "../trial.ts";

const NOT_IDS = [
  "",
  "x",
  "../../etc/x",
  "..",
  "not-a-uuid",
  "0190A5B2-7C3D-7E4F-8A1B-2C3D4E5F6071",
  "0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6071/..",
  "0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6071\n",
  "{0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6071}",
  "0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6071\0",
  "x".repeat(100_000),
  undefined,
  null,
  5,
  {},
  ["0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6071"],
] as const;

export const creating: readonly Case[] = [
  conformanceCase("the store states its capabilities correctly", [], async (trial) => {
    const store = await trial.open();
    const { dies: _, ...expected } = trial.capabilities;
    assert.deepEqual({ ...store.capabilities }, expected);
    assert.ok(store.url.length > 0);
    assert.ok(Array.isArray(store.warnings));
  }),

  conformanceCase(
    "create: the session begins with its header and its records, numbered from 1",
    ["P1"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, notes(3));
      assert.equal(journal.id, id);
      assert.equal(journal.head, 4);
      assert.equal(journal.durable, 4);
      assert.equal(journal.failure, null);
      const records = await all(store.history(id));
      assert.deepEqual(kindsOf(records), ["segment", "note", "note", "note"]);
      assert.deepEqual(seqsOf(records), [1, 2, 3, 4]);
      assert.deepEqual(textsOf(records), ["note 1", "note 2", "note 3"]);
    },
  ),

  conformanceCase(
    "create: an id can be any UUID; of those who create it at once, one succeeds",
    ["P6"],
    async (trial) => {
      const store = await trial.open();
      const id = idFrom(newId());
      const made = await Promise.allSettled([store.create(id, notes(1)), store.create(id, notes(1))]);
      assert.deepEqual(made.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
      const [journal] = made.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      await journal!.append(note("a"));
      await journal!.close();
      await refusal(() => store.create(id, notes(1)), "SESSION_EXISTS");
      const { journal: again } = await store.open(id);
      await again.append(note("b"));
      await again.close();
      assert.deepEqual(textsOf(await all(store.history(id))), ["note 1", "a", "b"]);
    },
  ),

  conformanceCase(
    "create: the header names format, session, segment, epoch and writer",
    ["P10", "S15"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      await store.create(id, [note("first")]);
      const [header] = (await store.read(id)).records;
      assert.equal(header?.kind, "segment");
      assert.equal(header["format"], "1.1");
      assert.equal(header["session"], id);
      assert.equal(header["segment"], 1);
      assert.equal(header["epoch"], 1);
      assert.match(String(header["by"]), /^.+\/.+$/);
      assert.match(header.crc, /^[0-9a-f]{8}$/);
    },
  ),

  conformanceCase(
    "create: other stores see the session before its first append",
    ["P1", "C10", "C17"],
    async (trial) => {
      const store = await trial.open();
      const other = await trial.open();
      const id = newId();
      assert.equal(await other.has(id), false);
      await store.create(id, [note("first")]);
      assert.equal(await other.has(id), true);
      assert.deepEqual(textsOf((await other.read(id)).records), ["first"]);
      assert.deepEqual(
        (await other.list()).sessions.map((listed) => listed.id),
        [id],
      );
    },
  ),

  conformanceCase("create: a session can start without records", [], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    assert.equal(journal.head, 1);
    await journal.append(note("later"));
    assert.equal(await store.has(id), true);
    const records = await all(store.history(id));
    assert.deepEqual(seqsOf(records), countFrom(1, records.length));
    assert.deepEqual(textsOf(records), ["later"]);
  }),

  conformanceCase(
    "create: a taken id fails with SESSION_EXISTS, and the session stays unchanged",
    ["P2"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, [note("first")]);
      await refusal(() => store.create(id, [note("second")]), "SESSION_EXISTS");
      await journal.close();
      await refusal(() => store.create(id, [note("second")]), "SESSION_EXISTS");
      await store.close();
      const again = await trial.open();
      await refusal(() => again.create(id, [note("third")]), "SESSION_EXISTS");
      assert.deepEqual(textsOf(await all(again.history(id))), ["first"]);
      const { journal: reopened } = await again.open(id);
      await reopened.append(note("goes on"));
      assert.deepEqual(textsOf(await all(again.history(id))), ["first", "goes on"]);
    },
  ),

  conformanceCase("create: of two concurrent calls, one gets the session", ["P6"], async (trial) => {
    const stores = [await trial.open(), await trial.open()];
    const id = newId();
    const results = await Promise.allSettled(stores.map((store, i) => store.create(id, [note(`from ${i}`)])));
    const won = results.findIndex((result) => result.status === "fulfilled");
    assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
    const lost = results.find((result) => result.status === "rejected")!;
    await refusal(() => Promise.reject(lost.reason), "SESSION_EXISTS", "SESSION_BUSY");
    assert.deepEqual(textsOf(await all(stores[0]!.history(id))), [`from ${won}`]);
  }),

  conformanceCase("create: a rejected record leaves no session behind", ["P8"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    await refusal(() => store.create(id, [note("good"), { kind: "note", text: Number.NaN }]), "RECORD_NOT_JSON");
    assert.equal(await store.has(id), false);
    assert.deepEqual((await store.list()).sessions, []);
    assert.equal(await store.holder(id), null);
    const journal = await store.create(id, [note("good")]);
    assert.equal(journal.head, 2);
  }),

  conformanceCase("ids: anything but a lower-case UUID is rejected, and touches nothing", ["C24"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("first")]);
    await journal.close();
    const before = await all(store.history(id));
    async function* lines(): AsyncGenerator<readonly VerbatimLine[]> {
      for (const record of before) yield [lineOf(record)!];
    }
    for (const bad of NOT_IDS as readonly string[]) {
      const calls: Record<string, () => unknown> = {
        create: () => store.create(bad, [note("x")]),
        open: () => store.open(bad),
        read: () => store.read(bad),
        history: () => all(store.history(bad)),
        follow: () => all(store.follow(bad, { signal: trial.signal })),
        has: () => store.has(bad),
        holder: () => store.holder(bad),
        delete: () => store.delete(bad),
        verify: () => store.verify(bad),
        ...(store.capabilities.pack ? { pack: () => store.pack(bad) } : {}),
        ...(store.adopt ? { adopt: () => store.adopt!(bad, lines()) } : {}),
      };
      for (const [name, call] of Object.entries(calls)) {
        const error = await refusal(call, "ID_INVALID").catch((found: Error) => found);
        assert.equal((error as HoldfastError).code, "ID_INVALID", `${name}(${String(bad)}): ${error.message}`);
      }
    }
    const { sessions } = await store.list();
    assert.deepEqual(
      sessions.map((listed) => listed.id),
      [id],
    );
    assert.deepEqual(await all(store.history(id)), before);
  }),
];
