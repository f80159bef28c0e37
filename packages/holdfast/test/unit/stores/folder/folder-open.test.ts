import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type HoldfastError, newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { lineOf, openFolderStore } from "holdfast/internal";
import type { Journal, JournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { SEGMENT_BYTES_MAX } from "../../../../src/journal/record.ts";
import { AnyCallFails } from "../../../any-call-fails.ts";
import { place } from "../../../place.ts";

/** How a writer starts: what it says of itself, what is durable by then, what can go wrong with its first append. */

async function session(store: JournalStore): Promise<string> {
  const journal = await store.create(newId(), [{ kind: "session" }]);
  await journal.append({ kind: "message", n: 0 });
  await journal.close();
  return journal.id;
}

/** How the last writer left a session. */
const states: Readonly<Record<string, (root: string, id: string) => void>> = {
  closed: () => {},
  "closed, and copied without its leases": (root, id) => rmSync(join(root, "leases", `${id}.closed`)),
  killed: (root, id) => truncateSync(segmentOf(root, id), readFileSync(segmentOf(root, id)).lastIndexOf('{"seq":')),
  "killed in the middle of a write": (root, id) => appendFileSync(segmentOf(root, id), '{"seq":9'),
  "killed before the last newline": (root, id) =>
    truncateSync(segmentOf(root, id), readFileSync(segmentOf(root, id)).length - 1),
};
const segmentOf = (root: string, id: string): string => join(root, "sessions", id, "000001.jsonl");

const messages = async (store: JournalStore, id: string): Promise<unknown[]> =>
  (await Array.fromAsync(store.history(id))).flatMap((record) => (record.kind === "message" ? [record["n"]] : []));

test.each(Object.keys(states))(
  "everything that a writer is shown is durable when it has the session: %s",
  async (state) => {
    using here = place();
    const id = await (async () => {
      await using store = await openFolderStore(here.path, { catalogue: false });
      return await session(store);
    })();
    states[state]!(here.path, id);
    const synced: string[] = [];
    const syncFolder = (path: string): void => {
      synced.push(path);
      nodeDisk.syncFolder(path);
    };
    await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, syncFolder }, catalogue: false });
    const { journal, records } = await store.open(id);
    expect(journal.head).toBe(records.at(-1)!.seq);
    // `closed` itself was promised to nobody.
    const promised = state === "closed, and copied without its leases" || state === "killed before the last newline";
    expect(journal.durable).toBe(journal.head - (promised ? 1 : 0));
    for (const path of [join(here.path, "sessions", id), join(here.path, "sessions"), here.path])
      expect(synced, "its names too").toContain(path);
    await journal.append({ kind: "message", n: 1 });
    expect(journal.durable).toBe(journal.head);
    await journal.close();
    expect(await messages(store, id)).toEqual([0, 1]);
  },
);

test.each(Object.keys(states))(
  "S11: a first append for which there was no space can be repeated: %s",
  async (state) => {
    using image = place();
    const id = await (async () => {
      await using store = await openFolderStore(image.path, { catalogue: false });
      return await session(store);
    })();
    states[state]!(image.path, id);
    for (let calls = 0; ; calls++) {
      using here = place();
      cpSync(image.path, here.path, { recursive: true });
      const failing = new AnyCallFails("ENOSPC");
      const store = await openFolderStore(here.path, { disk: failing.disk, catalogue: false });
      const { journal } = await store.open(id);
      failing.left = calls;
      const first = await journal.append({ kind: "message", n: 1 }).then(
        () => null,
        (error: HoldfastError) => error,
      );
      const { failed } = failing;
      failing.left = Number.POSITIVE_INFINITY;
      const where = `call ${calls}: ${failed}`;
      if (first?.code === "STORE_FULL") {
        await journal.append({ kind: "message", n: 2 });
        expect(journal.failure, where).toBeNull();
        await store.close();
        await using again = await openFolderStore(here.path, { catalogue: false });
        expect(await messages(again, id), where).toEqual([0, 2]);
        expect(await again.verify(id), where).toMatchObject({ damaged: [], missing: [], unclean: false, cutBytes: 0 });
      } else {
        // After a failed sync nothing is certain until the session is opened again.
        if (first) expect(first.code, where).toBe("SYNC_FAILED");
        await store.close().catch(() => undefined);
      }
      if (failed === null) break;
    }
  },
);

test.each([
  [{}, {}, "holdfast"],
  [{ app: "of the store" }, {}, "of the store"],
  [{ app: "of the store" }, { app: "of the writer" }, "of the writer"],
  [{}, { app: "of the writer" }, "of the writer"],
])("a writer says who it is: store %j, writer %j", async (ofStore, ofWriter, app) => {
  using here = place();
  await using store = await openFolderStore(here.path, ofStore);
  const id = newId();
  const use = async (journal: Journal): Promise<void> => {
    expect(await store.holder(id)).toMatchObject({ app });
    await journal.append({ kind: "message" });
    await journal.close();
  };
  const created = await store.create(id, [], ofWriter);
  expect(created.durable).toBe(created.head);
  await use(created);
  appendFileSync(segmentOf(here.path, id), "torn");
  await use((await store.open(id, ofWriter)).journal);
  const opened = (await Array.fromAsync(store.history(id))).filter(({ kind }) => kind === "opened");
  expect(opened).toMatchObject([
    { writer: { app, pid: process.pid }, unclean: false, cutBytes: 0 },
    { writer: { app, pid: process.pid }, unclean: true, cutBytes: 4 },
  ]);
});

describe("what another process does between the first look and the lease", () => {
  /** Something happens when the lease of a session is about to be taken. */
  function beforeLease(id: string, happen: () => void): Disk {
    let hasHappened = false;
    return {
      ...nodeDisk,
      lock: (path) => {
        if (!hasHappened && path.endsWith(id)) {
          hasHappened = true;
          happen();
        }
        return nodeDisk.lock(path);
      },
    };
  }

  test("it creates the session: neither `create` nor `adopt` replaces it", async () => {
    using from = place();
    await using source = await openFolderStore(from.path);
    const id = await session(source);
    const records = await Array.fromAsync(source.history(id));
    async function* lines() {
      yield records.map((record) => lineOf(record)!);
    }
    for (const make of [
      (store: JournalStore) => store.create(id, [{ kind: "session", title: "mine" }]),
      (store: JournalStore) => store.adopt!(id, lines()),
    ]) {
      using here = place();
      const copy = (): void => cpSync(join(from.path, "sessions"), join(here.path, "sessions"), { recursive: true });
      await using store = await openFolderStore(here.path, { disk: beforeLease(id, copy) });
      await expect(make(store)).rejects.toMatchObject({ code: "SESSION_EXISTS" });
      expect(await Array.fromAsync(store.history(id))).toEqual(records);
      expect(await store.holder(id)).toBeNull();
    }
  });

  test("it deletes the session: neither `open` nor `delete` nor `pack` finds it", async () => {
    for (const use of ["open", "delete", "pack"] as const) {
      using here = place();
      await using writer = await openFolderStore(here.path);
      const id = await session(writer);
      const remove = (): void => rmSync(join(here.path, "sessions", id), { recursive: true });
      await using store = await openFolderStore(here.path, { disk: beforeLease(id, remove) });
      await expect(store[use](id), use).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
      expect(existsSync(join(here.path, "sessions", id)), use).toBe(false);
      expect(await store.holder(id), use).toBeNull();
    }
  });

  test("it removes the session's files, and leaves the folder", async () => {
    using here = place();
    await using writer = await openFolderStore(here.path);
    const id = await session(writer);
    const folder = join(here.path, "sessions", id);
    const empty = (): void => {
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      writeFileSync(join(folder, "notes"), "");
    };
    await using store = await openFolderStore(here.path, { disk: beforeLease(id, empty) });
    await expect(store.open(id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    expect(await store.holder(id)).toBeNull();
  });
});

test("a newest segment that no writer can have left is read, and not written to", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false });
  const id = await session(store);
  const path = segmentOf(here.path, id);
  const { length } = readFileSync(path);
  truncateSync(path, SEGMENT_BYTES_MAX + 1);
  const refused = { code: "JOURNAL_UNREADABLE", facts: { session: id, segment: "000001.jsonl" } };
  await expect(store.open(id)).rejects.toMatchObject({
    ...refused,
    facts: { ...refused.facts, bytes: SEGMENT_BYTES_MAX + 1 },
    message: expect.stringContaining("someone has changed it"),
  });
  expect(await store.holder(id)).toBeNull();
  // Where a tail says where it ends, what is behind that does not matter.
  writeFileSync(`${path}.tail-${length}`, "");
  const { journal } = await store.open(id);
  await journal.append({ kind: "message", n: 1 });
  await journal.close();
  expect(await messages(store, id)).toEqual([0, 1]);

  const { journal: again } = await store.open(id);
  await again.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await again.close();
  await store.pack(id);
  rmSync(join(here.path, "sessions", id, "000003.jsonl"));
  await expect(store.open(id)).rejects.toMatchObject({
    code: "JOURNAL_UNREADABLE",
    facts: { session: id, segment: "000002.jsonl.zst" },
    message: expect.stringContaining("zstdcat"),
  });
});

test("a store tells what its location cannot promise", async () => {
  using here = place();
  const warningsOn = async (disk: Partial<Disk>): Promise<readonly string[]> => {
    await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, ...disk }, catalogue: false });
    return store.warnings;
  };
  expect(await warningsOn({ networkKind: () => null })).toEqual([]);
  expect(await warningsOn({ networkKind: () => "nfs" })).toEqual([expect.stringContaining("nfs")]);
  // As on Windows, where files have no owner.
  const stat: Disk["stat"] = (path) => {
    const { owner: _owner, ...found } = nodeDisk.stat(path) ?? {};
    return "kind" in found ? found : null;
  };
  expect(await warningsOn({ networkKind: () => null, stat })).toEqual([]);
});
