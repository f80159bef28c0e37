import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Attempt,
  attemptAppend,
  judge,
  Log,
  openSpec,
  type StoreSpec,
  viewOf,
} from "@holdfast/testkit/internal/kill";
import { Machine, mib, whyNoMounts } from "@holdfast/testkit/internal/machine";
import { isHoldfastError, newId } from "holdfast";
import type { Journal } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { needs } from "./allowed.ts";
import { ballast } from "./ballast.ts";

/** Appends until the disk is full, with ever smaller records. Returns the id of the next attempt. */
async function fillUp(journal: Journal, log: Log): Promise<void> {
  for (const chars of [60_000, 5000, 400, 20]) {
    for (;;) {
      const answer = await attemptAppend(journal, { id: log.nextId, kind: "append", parts: 1, chars }, hearing(log));
      if (answer.e === "ack") continue;
      expect(answer).toMatchObject({ e: "refused", code: "STORE_FULL" });
      break;
    }
  }
}
const hearing = (log: Log) => log.hear.bind(log);
const small = (log: Log, more: Partial<Attempt> = {}): Attempt => ({
  id: log.nextId,
  kind: "append",
  parts: 3,
  chars: 3000,
  ...more,
});

describe.each([
  { module: "folder", disk: "tmpfs" },
  { module: "folder", disk: "ext4" },
  { module: "sqlite", disk: "tmpfs" },
  { module: "sqlite", disk: "ext4" },
] as const)("C19: a full disk ($module on $disk)", ({ module, disk }) => {
  /** A small file system, and a store on it. */
  async function smallDisk(machine: Machine): Promise<string> {
    if (disk === "tmpfs") return machine.tmpfs("full", mib(6));
    const image = await machine.ext4("full", mib(12));
    await image.mount();
    return image.path;
  }

  test("a typed error at that append, nothing of it there; once space is back the same session goes on", async (context) => {
    needs(context, `full disk, ${module} on ${disk}`, whyNoMounts());
    await using machine = new Machine();
    const place = await smallDisk(machine);
    const spec: StoreSpec = { module, place, durability: "power" };
    await using store = await openSpec(spec);
    const id = newId();
    const log = new Log();
    const journal = await store.create(id, [{ kind: "lab.made" }]);
    const held = ballast(place, 800_000);
    await fillUp(journal, log);
    const acknowledged = log.acknowledged;
    expect(acknowledged).toBeGreaterThan(5);
    // What a tool would run on the strength of: the next append is refused too, and again.
    const refused = small(log, { key: "once" });
    for (let n = 0; n < 3; n++)
      expect(await attemptAppend(journal, refused, hearing(log))).toMatchObject({ e: "refused", code: "STORE_FULL" });
    expect(journal.failure).toBeNull();
    expect(judge(log, await viewOf(store.history(id)))).toEqual([]);

    held.drop();
    expect(await attemptAppend(journal, refused, hearing(log))).toMatchObject({ e: "ack" });
    expect(await attemptAppend(journal, refused, hearing(log))).toMatchObject({ e: "ack" });
    for (let n = 0; n < 20; n++)
      expect(await attemptAppend(journal, small(log), hearing(log))).toMatchObject({ e: "ack" });
    await journal.close();

    const reopened = await store.open(id);
    expect(reopened.recovery).toMatchObject({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
    expect(judge(log, await viewOf(store.history(id)))).toEqual([]);
    await reopened.journal.close();
    expect(log.acknowledged).toBe(acknowledged + 21);
  });

  test("an epoch that finds no space leaves the old one in use", async (context) => {
    needs(context, `full disk, ${module} on ${disk}`, whyNoMounts());
    await using machine = new Machine();
    const place = await smallDisk(machine);
    await using store = await openSpec({ module, place, durability: "power" });
    const id = newId();
    const log = new Log();
    const journal = await store.create(id, [{ kind: "lab.made" }]);
    for (let n = 0; n < 5; n++) await attemptAppend(journal, small(log), hearing(log));
    const held = ballast(place, 40_000);
    const big = { kind: "epoch", text: "x".repeat(1_000_000) };
    await expect(journal.epoch(() => [big])).rejects.toSatisfy((error) => isHoldfastError(error, "STORE_FULL"));
    expect((await store.read(id)).records.some(({ kind }) => kind === "epoch")).toBe(false);
    held.drop();
    expect(await attemptAppend(journal, small(log), hearing(log))).toMatchObject({ e: "ack" });
    await journal.close();
    expect(judge(log, await viewOf(store.history(id)))).toEqual([]);
    expect((await store.read(id)).records.some(({ kind }) => kind === "epoch")).toBe(false);
  });
});

test("S8: a torn end on a full disk: opening is refused, reading works, and with space it heals", async (context) => {
  needs(context, "full disk, torn end", whyNoMounts());
  await using machine = new Machine();
  const place = await machine.tmpfs("full", mib(6));
  await using store = await openSpec({ module: "folder", place, durability: "power" });
  const id = newId();
  const log = new Log();
  const journal = await store.create(id, [{ kind: "lab.made" }]);
  for (let n = 0; n < 5; n++) await attemptAppend(journal, small(log), hearing(log));
  await journal.close();
  const segment = join(place, "store", "sessions", id, "000001.jsonl");
  const torn = `{"seq":99,"at":"${"x".repeat(1_000_000)}`;
  appendFileSync(segment, torn);
  const before = readFileSync(segment);

  const held = ballast(place);
  await expect(store.open(id)).rejects.toSatisfy((error) => isHoldfastError(error, "STORE_FULL"));
  expect(readFileSync(segment).equals(before)).toBe(true);
  expect((await store.read(id)).recovery.cutBytes).toBe(torn.length);
  expect(judge(log, await viewOf(store.history(id)))).toEqual([]);

  held.drop();
  const { journal: healed, recovery } = await store.open(id);
  expect(recovery.cutBytes).toBe(torn.length);
  expect(readFileSync(recovery.quarantine!, "utf8")).toBe(torn);
  await attemptAppend(healed, small(log), hearing(log));
  await healed.close();
  expect(judge(log, await viewOf(store.history(id)))).toEqual([]);
});
