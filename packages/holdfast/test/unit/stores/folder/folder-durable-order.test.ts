import { appendFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { lineOf, openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";

/**
 * What makes an operation survive a power cut is the order of its steps: bytes before their name, a new name before the
 * old one goes. Here each step is written down.
 */
function noting(root: string): { readonly disk: Disk; readonly steps: string[] } {
  const steps: string[] = [];
  const note = (step: string, path: string): void => {
    // Temporary names are random, and what is noted of leases is not the journal's.
    const name = relative(root, path).replace(/\.[0-9a-f]{12}\.tmp$/, ".tmp");
    if (!name.startsWith("leases")) steps.push(`${step} ${name === "" ? "." : name}`);
  };
  const disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      const { write, syncNow, sync } = file;
      return Object.assign(file, {
        write: (bytes: Uint8Array) => {
          if (steps.at(-1) !== `write ${relative(root, path)}`) note("write", path);
          return write.call(file, bytes);
        },
        syncNow: () => {
          note("sync", path);
          syncNow.call(file);
        },
        sync: () => {
          note("sync", path);
          return sync.call(file);
        },
      });
    },
    rename: (from, to) => {
      note("rename", from);
      nodeDisk.rename(from, to);
    },
    link: (from, to) => {
      note("link", from);
      nodeDisk.link(from, to);
    },
    remove: (path) => {
      note("remove", path);
      nodeDisk.remove(path);
    },
    syncFolder: (path) => {
      if (path.startsWith(root)) note("sync folder", path);
      nodeDisk.syncFolder(path);
    },
  };
  return { disk, steps };
}

/** The steps in the session's folder, without its path. */
const within = (steps: readonly string[], id: string): string[] =>
  steps.map((step) => step.replaceAll(`sessions/${id}/`, "").replaceAll(id, "<id>"));

test("S18: create", async () => {
  using here = place();
  const { disk, steps } = noting(here.path);
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  const id = newId();
  await (await store.create(id, [])).close();
  steps.length = 0;
  const another = newId();
  const journal = await store.create(another, []);
  expect(within(steps, another)).toEqual([
    "write 000001.jsonl.tmp",
    "sync 000001.jsonl.tmp",
    "link 000001.jsonl.tmp",
    "remove 000001.jsonl.tmp",
    "sync folder sessions/<id>",
    "sync folder sessions",
  ]);
  await journal.close();
});

test("S15: a new epoch", async () => {
  using here = place();
  const { disk, steps } = noting(here.path);
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "message" }, { durability: "process" });
  steps.length = 0;
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  expect(within(steps, journal.id)).toEqual([
    "sync 000001.jsonl",
    "write 000002.jsonl.tmp",
    "sync 000002.jsonl.tmp",
    "link 000002.jsonl.tmp",
    "remove 000002.jsonl.tmp",
    "sync folder sessions/<id>",
    "remove 000002.claim",
  ]);
  await journal.close();
});

test("S8: a torn end is kept, the segment is sealed, and only then does the journal go on", async () => {
  using here = place();
  const { disk, steps } = noting(here.path);
  const id = newId();
  {
    await using store = await openFolderStore(here.path, { catalogue: false });
    await (await store.create(id, [])).close();
  }
  appendFileSync(join(here.path, "sessions", id, "000001.jsonl"), "torn");
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  const { journal } = await store.open(id);
  const tail = readdirSync(join(here.path, "sessions", id)).find((name) => name.includes(".tail-"))!;
  const quarantined = readdirSync(join(here.path, "sessions", id, "quarantine"))[0]!;
  expect(within(steps, id)).toEqual([
    "sync folder sessions/<id>",
    "sync folder sessions/<id>",
    `write quarantine/${quarantined}.tmp`,
    `sync quarantine/${quarantined}.tmp`,
    `rename quarantine/${quarantined}.tmp`,
    "sync folder quarantine",
    `write ${tail}.tmp`,
    `sync ${tail}.tmp`,
    `link ${tail}.tmp`,
    `remove ${tail}.tmp`,
    "sync folder sessions/<id>",
    "sync folder .",
    "sync folder sessions",
  ]);
  steps.length = 0;
  await journal.append({ kind: "message" });
  expect(within(steps, id)).toEqual([
    "write 000001.jsonl",
    "sync 000001.jsonl",
    "write 000002.jsonl.tmp",
    "sync 000002.jsonl.tmp",
    "link 000002.jsonl.tmp",
    "remove 000002.jsonl.tmp",
    "sync folder sessions/<id>",
    "write 000002.jsonl",
    "sync 000002.jsonl",
  ]);
  await journal.close();
});

test("S17: pack, of a segment with a tail", async () => {
  using here = place();
  const { disk, steps } = noting(here.path);
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  const id = newId();
  await (await store.create(id, [])).close();
  appendFileSync(join(here.path, "sessions", id, "000001.jsonl"), "torn");
  const { journal } = await store.open(id);
  await journal.append({ kind: "message" });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  const tail = readdirSync(join(here.path, "sessions", id)).find((name) => name.includes(".tail-"))!;
  steps.length = 0;
  expect((await store.pack(id)).segments).toBe(2);
  const packed = (name: string): string[] => [
    `write ${name}.zst.tmp`,
    `sync ${name}.zst.tmp`,
    `rename ${name}.zst.tmp`,
    "sync folder sessions/<id>",
    `remove ${name}`,
    "sync folder sessions/<id>",
  ];
  const once = within(steps, id).filter((step, i, all) => step !== all[i - 1]);
  expect(once).toEqual([
    "sync 000001.jsonl",
    `sync ${tail}`,
    ...packed("000001.jsonl"),
    `remove ${tail}`,
    "sync folder sessions/<id>",
    "sync 000002.jsonl",
    ...packed("000002.jsonl"),
  ]);
});

test("adopt", async () => {
  using from = place();
  using here = place();
  await using source = await openFolderStore(from.path, { catalogue: false });
  const id = newId();
  const journal = await source.create(id, []);
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  const records = await Array.fromAsync(source.history(id));
  async function* lines() {
    yield records.map((record) => lineOf(record)!);
  }
  const { disk, steps } = noting(here.path);
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  await store.adopt!(id, lines());
  expect(within(steps, id)).toEqual([
    "sync folder .",
    "write incoming/<id>/000001.jsonl",
    "sync incoming/<id>/000001.jsonl",
    "write incoming/<id>/000002.jsonl",
    "sync incoming/<id>/000002.jsonl",
    "sync folder incoming/<id>",
    "sync folder incoming",
    "rename incoming/<id>",
    "sync folder sessions",
    "sync folder incoming",
  ]);
});
