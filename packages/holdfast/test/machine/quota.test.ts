import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { type Attempt, attemptAppend, judge, Log, openSpec, viewOf } from "@holdfast/testkit/internal/kill";
import { Machine, whyNoMounts } from "@holdfast/testkit/internal/machine";
import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import { needs } from "./allowed.ts";
import { ballast } from "./ballast.ts";

/**
 * A btrfs file system of 64 MiB whose subvolume `s` may use 6 MiB: a quota that the kernel enforces against root too,
 * and that needs no tool to set up. It was made with btrfs-progs 6.2:
 *
 *     truncate -s 64M image && mkfs.btrfs --mixed -m single -d single image && mount -o loop image m
 *     btrfs quota enable m && btrfs subvolume create m/s && btrfs qgroup limit 6M m/s
 */
const IMAGE = new URL("./quota.btrfs.zst", import.meta.url);

function whyNoQuota(): string | null {
  const known = existsSync("/proc/filesystems") ? readFileSync("/proc/filesystems", "utf8") : "";
  return whyNoMounts() ?? (/\tbtrfs$/m.test(known) ? null : "the kernel has no btrfs");
}

/** Not the SQLite store: on btrfs even opening it needs space (its log). */
describe("C19: a quota that is used up", () => {
  test("is told as such, nothing of the append is there, and with room the same session goes on", async (context) => {
    needs(context, "quota", whyNoQuota());
    await using machine = new Machine();
    const disk = machine.image("quota", zstdDecompressSync(readFileSync(IMAGE)));
    await disk.mount();
    const place = join(disk.path, "s");
    // Where SQLite cannot share the memory of the catalogue for lack of space, the kernel ends the process (SIGBUS).
    mkdirSync(join(place, "store", "catalog.sqlite"), { recursive: true });
    await using store = await openSpec({ module: "folder", place, durability: "power" });
    const id = newId();
    const log = new Log();
    const hear = log.hear.bind(log);
    const attempt = (more: Partial<Attempt> = {}): Attempt => {
      return { id: log.nextId, kind: "append", parts: 3, chars: 3000, ...more };
    };
    const journal = await store.create(id, [{ kind: "lab.made" }]);
    for (let n = 0; n < 5; n++) expect(await attemptAppend(journal, attempt(), hear)).toMatchObject({ e: "ack" });
    const held = ballast(place, 0);

    const refused = attempt({ key: "once", chars: 200_000 });
    for (let n = 0; n < 3; n++)
      expect(await attemptAppend(journal, refused, hear)).toMatchObject({ e: "refused", code: "STORE_FULL" });
    await expect(journal.append({ kind: "lab.big", text: "x".repeat(500_000) })).rejects.toMatchObject({
      code: "STORE_FULL",
      message: expect.stringMatching(/the disk quota is used up \(EDQUOT, .*raise the quota/),
      facts: { errno: "EDQUOT" },
    });
    expect(journal.failure).toBeNull();
    expect(judge(log, await viewOf(store.history(id)))).toEqual([]);

    held.drop();
    for (const next of [() => refused, () => refused, attempt, attempt])
      expect(await attemptAppend(journal, next(), hear)).toMatchObject({ e: "ack" });
    await journal.close();
    const reopened = await store.open(id);
    expect(reopened.recovery).toMatchObject({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
    await reopened.journal.close();
    expect(judge(log, await viewOf(store.history(id)))).toEqual([]);
  });
});
