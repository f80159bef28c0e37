import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, newId } from "holdfast";
import { lineOf, openFolderStore } from "holdfast/internal";
import type { Journal, JournalStore, Opened, VerbatimLine } from "holdfast/store";
import { expect, test } from "vitest";
import { AnyCallFails } from "../../../any-call-fails.ts";
import { place } from "../../../place.ts";

/**
 * Each operation of a folder store runs on a disk whose n-th call fails, for every n until the operation makes fewer
 * calls. Whatever failed: the error is worded, no descriptor and no lease stays behind, no temporary file either, and
 * the sessions hold what was acknowledged.
 */

const IDS = { closed: newId(), torn: newId(), deleted: newId(), unborn: newId(), incoming: newId(), other: newId() };

/** Sessions in every state, and what a killed process leaves behind. */
async function fill(root: string): Promise<void> {
  await using store = await openFolderStore(root);
  for (const id of [IDS.closed, IDS.torn, IDS.deleted]) {
    await using journal = await store.create(id, [{ kind: "session" }]);
    await journal.append({ kind: "message", n: 0 });
    await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
    await journal.append({ kind: "message", n: 1 });
  }
  appendFileSync(join(root, "sessions", IDS.torn, "000002.jsonl"), '{"seq":9,"torn');
  await store.delete(IDS.deleted);
  const old = Date.now() / 1000 - 48 * 3600;
  for (const folder of [join(root, "sessions", IDS.unborn), join(root, "incoming", IDS.incoming)]) {
    mkdirSync(folder, { recursive: true });
    appendFileSync(join(folder, "left.tmp"), "half");
    utimesSync(folder, old, old);
  }
}

/** The numbers of the messages that were acknowledged, by session. */
type Acknowledged = Map<string, number[]>;

interface Operation {
  readonly run: (
    store: JournalStore,
    acknowledged: Acknowledged,
    reopen: () => Promise<JournalStore>,
  ) => Promise<unknown>;
  /** What its failures say was being done. */
  readonly says: readonly string[];
}

/** Appends to a journal in all ways, and closes it. */
async function write(opening: Promise<Journal>, acknowledged: Acknowledged): Promise<void> {
  const journal = await opening;
  const known = [...(acknowledged.get(journal.id) ?? [])];
  acknowledged.set(journal.id, known);
  await journal.append({ kind: "message", n: 2 });
  known.push(2);
  await journal.epoch(() => [
    { kind: "epoch", reason: "clear" },
    { kind: "message", n: 3 },
  ]);
  known.push(3);
  for (const n of [4, 5]) {
    await journal.append({ kind: "message", n });
    known.push(n);
  }
  await journal.close();
}

const opened = async (opening: Promise<Opened>): Promise<Journal> => (await opening).journal;

async function* linesOf(id: string): AsyncGenerator<readonly VerbatimLine[]> {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false });
  const journal = await store.create(id, [{ kind: "session" }]);
  await journal.append({ kind: "message", n: 0 });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  for await (const record of store.history(id)) yield [lineOf(record)!];
}

const WRITING = ["append to the journal", "check a session", "open a journal", "start a new segment"];
const LEASING = "take the lease of a session";

const operations: Readonly<Record<string, Operation>> = {
  "open the store": {
    run: async (_store, _known, reopen) => (await reopen()).close(),
    says: ["check the store", "create the folder for leases", "open the store"],
  },
  "create a session": {
    run: (store, known) => write(store.create(IDS.other, []), known),
    says: [...WRITING, "create a session", LEASING, "write a new file"],
  },
  "open a session that was closed": {
    run: (store, known) => write(opened(store.open(IDS.closed)), known),
    says: [...WRITING, "make a session durable", "read a session", LEASING, "write a new file"],
  },
  "open a session with a torn end": {
    run: (store, known) => write(opened(store.open(IDS.torn)), known),
    says: [
      "append to the journal",
      "check a session",
      "make a session durable",
      "prepare the journal for writing",
      "read a session",
      "start a new segment",
      LEASING,
      "write a new file",
    ],
  },
  "pack a session": {
    run: (store) => store.pack(IDS.closed),
    says: ["check a session", "pack a segment", "pack a session", "read a session", LEASING, "write a new file"],
  },
  "delete a session": {
    run: (store) => store.delete(IDS.deleted),
    says: ["check a session", "delete a session", LEASING],
  },
  "adopt a session": {
    run: (store) => store.adopt!(IDS.other, linesOf(IDS.other)),
    says: ["adopt a session", "check a session", LEASING],
  },
  "collect garbage": { run: (store) => store.gc({ graceMs: 0 }), says: ["collect garbage", LEASING] },
  "read a session": {
    run: (store) => store.read(IDS.torn),
    says: ["check a lease", "check a session", "read a session"],
  },
  "read a session's history": {
    run: (store) => Array.fromAsync(store.history(IDS.closed)),
    says: ["check a session", "read a session"],
  },
  "verify a session": {
    run: (store) => store.verify(IDS.torn),
    says: ["check a lease", "check a session", "read a session"],
  },
  "follow a session": {
    run: async (store) => {
      for await (const { kind } of store.follow(IDS.closed)) if (kind === "closed") break;
    },
    says: ["check a session", "follow a session"],
  },
  "list the sessions": {
    run: async (store) => {
      const { sessions } = await store.list();
      expect(sessions.map(({ id }) => id)).toEqual(expect.arrayContaining([IDS.closed, IDS.torn]));
    },
    says: ["list the sessions"],
  },
};

test.each(Object.keys(operations))("P8: any one call of the disk fails: %s", async (name) => {
  const { run, says } = operations[name]!;
  using image = place();
  await fill(image.path);
  if (name === "delete a session") {
    await using store = await openFolderStore(image.path);
    await store.adopt!(IDS.deleted, linesOf(IDS.deleted));
  }
  const said = new Set<string>();
  for (let calls = 0; ; calls++) {
    using here = place();
    cpSync(image.path, here.path, { recursive: true, preserveTimestamps: true });
    const failing = new AnyCallFails("EIO");
    const open = () => openFolderStore(here.path, { disk: failing.disk, segmentBytesMax: 400, catalogue: false });
    const store = await open();
    const acknowledged: Acknowledged = new Map([
      [IDS.closed, [0, 1]],
      [IDS.torn, [0, 1]],
    ]);
    failing.left = calls;
    const failures: unknown[] = [];
    await run(store, acknowledged, open).catch((error) => failures.push(error));
    const { failed } = failing;
    failing.left = Number.POSITIVE_INFINITY;
    await store.close().catch((error) => failures.push(error));
    const where = `call ${calls}: ${failed}`;

    expect(failing.open, where).toEqual([]);
    expect(existsSync(join(here.path, "incoming", IDS.other)), where).toBe(false);
    for (const error of failures) {
      expect(error, where).toBeInstanceOf(HoldfastError);
      const { code, message, facts } = error as HoldfastError;
      expect(["STORE_IO", "SYNC_FAILED"], where).toContain(code);
      expect(message, where).toMatch(/^\S( ?\S)+\.$/);
      expect(facts["errno"] ?? "EIO", where).toBe("EIO");
      if (!message.startsWith("Could not")) continue;
      const [, doing, path] = /^Could not ([^:]*): the disk reported an error \(EIO, (.*)\)\. /.exec(message) ?? [];
      said.add(doing!);
      expect(facts, where).toEqual({ path, errno: "EIO" });
    }
    // Unless it could not be removed, or looked at before it is removed.
    const isLeft = failed !== null && /^(stat|remove) .*\.tmp$/.test(failed);
    const names = readdirSync(join(here.path, "sessions"), { recursive: true, encoding: "utf8" });
    const temporary = names.filter((path) => path.endsWith(".tmp") && !path.endsWith("left.tmp"));
    if (!isLeft) expect(temporary, where).toEqual([]);

    await using healthy = await openFolderStore(here.path, { catalogue: false });
    for (const id of [IDS.closed, IDS.torn, IDS.other]) {
      if (!(await healthy.has(id))) continue;
      const { journal } = await healthy.open(id);
      await journal.append({ kind: "message", n: 100 });
      await journal.close();
      const found = (await Array.fromAsync(healthy.history(id))).flatMap((record) =>
        record.kind === "message" ? [record["n"] as number] : [],
      );
      const known = acknowledged.get(id) ?? [];
      expect(found.slice(0, known.length), where).toEqual(known);
      expect(found.at(-1), where).toBe(100);
      const { damaged, missing } = await healthy.verify(id);
      expect([damaged, missing], where).toEqual([[], []]);
    }
    if (failed !== null) continue;
    expect(failures).toEqual([]);
    break;
  }
  expect([...said].sort(), "every failure says what was being done").toEqual([...says].sort());
});
