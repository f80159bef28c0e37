import { getEventListeners } from "node:events";
import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type JournalRecord, newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { followSession } from "../../../../src/stores/folder/follow.ts";
import { CountingDisk } from "../../../counting-disk.ts";
import { sealed } from "../../../hostile/hostile-store.ts";
import { place } from "../../../place.ts";

/** Follows in the background, and shows what has been given out so far. */
function follow(records: AsyncIterable<JournalRecord>): {
  readonly seqs: number[];
  until(seq: number): Promise<void>;
  readonly ended: Promise<void>;
} {
  const seqs: number[] = [];
  const ended = (async () => {
    for await (const { seq } of records) seqs.push(seq);
  })();
  const until = async (seq: number) => {
    while ((seqs.at(-1) ?? 0) < seq) await Promise.race([sleep(5), ended]);
  };
  return { seqs, until, ended };
}

test("S19: followers in the writer's process see a record when it is acknowledged, not before", async () => {
  using here = place();
  const counting = new CountingDisk();
  let release = (): void => {};
  const gate = new Promise<void>((done) => {
    release = done;
  });
  let held = false;
  const disk = { ...counting.disk, open: holdSyncs };
  await using store = await openFolderStore(here.path, { disk });
  const journal = await store.create(newId(), []);
  const { seq: first } = await journal.append({ kind: "acknowledged" });
  const seen = follow(journal.follow());
  await seen.until(first);
  held = true;
  const waiting = journal.append({ kind: "in flight" });
  await sleep(400);
  expect(seen.seqs.at(-1), "two polls and a watch later it is still not given out").toBe(first);
  release();
  const { seq } = await waiting;
  await seen.until(seq);
  expect(seen.seqs).toEqual(Array.from({ length: seq }, (_, i) => i + 1));
  await journal.close();

  function holdSyncs(...parameters: Parameters<typeof counting.disk.open>): ReturnType<typeof counting.disk.open> {
    const file = counting.disk.open(...parameters);
    return { ...file, sync: () => (held ? gate : Promise.resolve()).then(() => file.sync()) };
  }
});

test("C18: a follower never sees half a unit, nor half a record, and what a heal cut off is not glued to what follows", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  const journal = await store.create(id, []);
  await journal.append([{ kind: "a" }, { kind: "b" }, { kind: "c" }]);
  await journal.close();
  const path = join(here.path, "sessions", id, "000001.jsonl");
  const lines = readFileSync(path, "utf8").split("\n");

  // As if the writer were in the middle of its write: the unit's first line, and half of its second.
  truncateSync(path, Buffer.byteLength(lines.slice(0, 3).join("\n")) + 20);
  const stop = new AbortController();
  const seen = follow(store.follow(id, { signal: stop.signal }));
  await seen.until(2);
  await sleep(300);
  expect(seen.seqs).toEqual([1, 2]);
  // The writer dies; another one heals, and goes on with the same numbers.
  const opened = await store.open(id);
  expect(opened.recovery.cutBytes).toBeGreaterThan(0);
  const { last } = await opened.journal.append([{ kind: "d" }, { kind: "e" }]);
  await seen.until(last);
  expect(seen.seqs).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  stop.abort();
  await seen.ended;
  await opened.journal.close();
});

test("a follower goes on over new segments and epochs, and ends when the session is deleted", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { segmentBytesMax: 400 });
  await using reader = await openFolderStore(here.path);
  const id = newId();
  const journal = await store.create(id, []);
  const seen = follow(reader.follow(id));
  const late = follow(reader.follow(id, { after: 5 }));
  for (let i = 0; i < 30; i++) await journal.append({ kind: "message", i });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.append({ kind: "message" });
  const { head } = journal;
  await journal.close();
  await seen.until(head + 1);
  await late.until(head + 1);
  expect(seen.seqs).toEqual(Array.from({ length: head + 1 }, (_, i) => i + 1));
  expect(late.seqs).toEqual(seen.seqs.slice(5));
  await store.delete(id);
  await Promise.all([seen.ended, late.ended]);
});

test("C20: damage in what was durable is passed over by a follower; at the live end it waits", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  const journal = await store.create(id, []);
  const stop = new AbortController();
  const seen = follow(store.follow(id, { signal: stop.signal }));
  await journal.append({ kind: "message" });
  await journal.close();
  const head = 4;
  await seen.until(head);
  appendFileSync(join(here.path, "sessions", id, "000001.jsonl"), "garbage at the live end\n");
  await sleep(300);
  expect(seen.seqs).toEqual([1, 2, 3, 4]);
  const { journal: again } = await store.open(id);
  const { seq } = await again.append({ kind: "message" });
  await seen.until(seq);
  expect(seen.seqs).toEqual(Array.from({ length: seq }, (_, i) => i + 1));
  stop.abort();
  await seen.ended;
  await again.close();
});

test("P1: what `process` wrote is synced in the background, without anybody asking", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk, durability: "process" });
  const journal = await store.create(newId(), []);
  const { last } = await journal.append({ kind: "draft" });
  expect(journal.durable).toBeLessThan(last);
  while (journal.durable < last) await sleep(20);
  expect(counting.calls.get("sync")).toBeGreaterThan(0);
  await journal.close();
});

test("P1: a loop that never gives way does not keep `process` from being synced", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { durability: "process" });
  const journal = await store.create(newId(), []);
  // It takes a fraction of a second, and on a busy disk as long as a sync takes there. No timer could end these loops.
  const later = (): number => performance.now() + 60_000;
  for (const end = later(); journal.durable <= 1 && performance.now() < end; )
    await journal.append({ kind: "message" });
  expect(journal.durable).toBeGreaterThan(1);
  const before = journal.durable;
  for (const end = later(); journal.durable <= before && performance.now() < end; )
    journal.appendSync({ kind: "message" });
  expect(journal.durable).toBeGreaterThan(before);
  await journal.close();
});

test("a follower whose session is deleted and made anew ends, and does not go on in another session", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  await using reader = await openFolderStore(here.path);
  const id = newId();
  const first = await store.create(id, []);
  await first.append({ kind: "message" });
  await first.close();
  const seen = follow(reader.follow(id));
  await seen.until(4);
  await store.delete(id);
  const second = await store.create(id, []);
  for (let i = 0; i < 9; i++) await second.append({ kind: "other" });
  await seen.ended;
  expect(seen.seqs).toEqual([1, 2, 3, 4]);
  await second.close();
});

test("a follower does without a watch where there is none to be had", async () => {
  using here = place();
  const none = (): never => {
    throw Object.assign(new Error("no watches left"), { code: "ENOSPC" });
  };
  await using store = await openFolderStore(here.path, { disk: { ...new CountingDisk().disk, watch: none } });
  const journal = await store.create(newId(), []);
  const seen = follow(store.follow(journal.id));
  const { seq } = await journal.append({ kind: "message" });
  await seen.until(seq);
  await journal.close();
});

test("P6: a follower that was given a record of a writer that was replaced is told so, and gets no other in its place", async () => {
  using here = place();
  const [mine, image] = [join(here.path, "mine"), join(here.path, "image")];
  const replaced = await openFolderStore(mine);
  const id = newId();
  const journal = await replaced.create(id, []);
  await journal.append({ kind: "note", text: "of both" });
  // What a writer finds that takes the session over now.
  cpSync(join(mine, "sessions"), join(image, "sessions"), { recursive: true });
  await journal.append({ kind: "note", text: "of the one that is replaced" });
  await using reader = await openFolderStore(mine);
  const followed = reader.follow(id)[Symbol.asyncIterator]();
  for (let seq = 1; seq <= journal.head; seq++) expect((await followed.next()).value.seq).toBe(seq);
  {
    await using next = await openFolderStore(image);
    const { journal: other } = await next.open(id);
    await other.append({ kind: "note", text: "of the next one" });
    await other.close();
  }
  cpSync(join(image, "sessions", id), join(mine, "sessions", id), { recursive: true, force: false });
  await expect(followed.next()).rejects.toMatchObject({ code: "CURSOR_STALE" });
  await expect(replaced.close()).rejects.toMatchObject({ code: "LEASE_LOST" });
});

test.each(["aborts", "leaves the loop", "follows a session that is deleted", "has a cursor that is no longer valid"])(
  "a follower that %s leaves no watch and no listener behind",
  async (how) => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append({ kind: "message" });
    await journal.close();
    const left = { watches: 0, listeners: 0 };
    const disk: Disk = {
      ...nodeDisk,
      watch: (path, onChange) => {
        left.watches++;
        const stop = nodeDisk.watch(path, onChange);
        return () => {
          left.watches--;
          stop();
        };
      },
    };
    const writers = [1, 2].map(() => ({
      acknowledged: Number.POSITIVE_INFINITY,
      onAcknowledged: () => {
        left.listeners++;
        return () => left.listeners--;
      },
    }));
    let looks = 0;
    // The writer in this process changes, as it does when a session is closed and opened again.
    const live = () => writers[Math.min(1, Math.floor(looks++ / 3))];
    const stop = new AbortController();
    const after = how.includes("cursor") ? "2-00000000" : 0;
    const source = { disk, id, folder: join(here.path, "sessions", id), live };
    const seen: number[] = [];
    const following = (async () => {
      for await (const { seq } of followSession(source, { signal: stop.signal, after })) {
        expect(left).toEqual({ watches: 1, listeners: 1 });
        expect(getEventListeners(stop.signal, "abort")).toHaveLength(1);
        seen.push(seq);
        if (how === "leaves the loop" && seq === 2) break;
        if (seq < 4) continue;
        if (how === "aborts") stop.abort();
        else await store.delete(id);
      }
    })();
    if (after === 0) await following;
    else await expect(following).rejects.toMatchObject({ code: "CURSOR_STALE" });
    expect(seen).toEqual(after !== 0 ? [] : how === "leaves the loop" ? [1, 2] : [1, 2, 3, 4]);
    expect(left).toEqual({ watches: 0, listeners: 0 });
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  },
);

/** A session of many segments and two epochs, without a writer. */
async function longSession(root: string): Promise<{ id: string; head: number }> {
  await using store = await openFolderStore(root, { segmentBytesMax: 400 });
  const journal = await store.create(newId(), []);
  for (let n = 0; n < 12; n++) await journal.append({ kind: "message", n });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.append({ kind: "message" });
  const { id } = journal;
  await journal.close();
  return { id, head: journal.head };
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

test("history and followers start at any record, and miss none", async () => {
  using here = place();
  const { id, head } = await longSession(here.path);
  await using store = await openFolderStore(here.path);
  for (let from = 1; from <= head; from++) {
    const history = (await Array.fromAsync(store.history(id, from))).map(({ seq }) => seq);
    expect(history).toEqual(range(from, head));
    const seen: number[] = [];
    for await (const { seq } of store.follow(id, { after: from - 1 })) {
      seen.push(seq);
      if (seq === head) break;
    }
    expect(seen).toEqual(range(from, head));
  }
});

test.each([0, 7])(
  "a follower after %i misses nothing, whichever file has another name when it is opened",
  async (after) => {
    using here = place();
    const { id, head } = await longSession(here.path);
    for (let openings = 0; ; openings++) {
      let left = openings;
      const open: Disk["open"] = (path, mode) => {
        if (mode === "read" && path.includes(id) && left-- === 0)
          throw Object.assign(new Error("it is being packed"), { code: "ENOENT" });
        return nodeDisk.open(path, mode);
      };
      await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, open }, catalogue: false });
      const seen: number[] = [];
      for await (const { seq } of store.follow(id, { after })) {
        seen.push(seq);
        if (seq === head) break;
      }
      expect(seen, `opening ${openings}`).toEqual(range(after + 1, head));
      if (left >= 0) break;
    }
  },
);

test("P10: a follower that comes to a segment of a newer format refuses it", async () => {
  using here = place();
  const { id } = await longSession(here.path);
  const path = join(here.path, "sessions", id, "000002.jsonl");
  const [header, ...rest] = readFileSync(path, "utf8").split("\n");
  const { crc: _crc, ...members } = JSON.parse(header!) as Record<string, unknown>;
  writeFileSync(path, `${sealed({ ...members, format: "9.0" })}${rest.join("\n")}`);
  for (const name of readdirSync(join(path, "..")))
    if (/^00000[3-9]|^0000[1-9]/.test(name)) rmSync(join(path, "..", name));
  await using store = await openFolderStore(here.path);
  const seen = follow(store.follow(id));
  await expect(seen.ended).rejects.toMatchObject({ code: "FORMAT_NEWER" });
  expect(seen.seqs[0]).toBe(1);
});

test("S19: a follower in the writer's process sees a new epoch without any append, and what another store appends later", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const journal = await store.create(newId(), []);
  const seen = follow(journal.follow());
  await journal.append({ kind: "message" });
  const { last } = await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await seen.until(last);
  await journal.close();
  await using other = await openFolderStore(here.path);
  const { journal: next } = await other.open(journal.id);
  const { seq } = await next.append({ kind: "message" });
  await seen.until(seq);
  expect(seen.seqs).toEqual(range(1, seq));
  await next.close();
  await store.close();
  await seen.ended;
});
