import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../../place.ts";

/** What a SIGKILL in the middle of a write leaves: a prefix of its bytes. */

test("C1: cut after every byte of the last unit, also inside a 4-byte character: reopen, append, reopen", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false });
  const id = newId();
  const journal = await store.create(id, [{ kind: "session" }]);
  const { last: safe } = await journal.append({ kind: "message", text: "acknowledged" });
  const { last } = await journal.append([{ kind: "message", text: "🙂 torn 🙂" }, { kind: "note" }]);
  await journal.close();
  const folder = join(here.path, "sessions", id);
  const path = join(folder, "000001.jsonl");
  const whole = readFileSync(path);
  const from = whole.indexOf(`{"seq":${safe + 1},`);
  const to = whole.indexOf(`{"seq":${last + 1},`);
  expect(to - from).toBeGreaterThan(150);

  for (let cut = from; cut <= to; cut++) {
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    writeFileSync(path, whole.subarray(0, cut));
    const opened = await store.open(id);
    // The unit counts when all of it is there, with or without its last newline.
    const counts = cut >= to - 1;
    expect(opened.recovery.cutBytes, `cut at ${cut}`).toBe(counts ? 0 : cut - from);
    expect(opened.records.at(-1)?.seq, `cut at ${cut}`).toBe(counts ? last : safe);
    if (!counts && cut > from) expect(readFileSync(opened.recovery.quarantine!)).toEqual(whole.subarray(from, cut));
    const { seq } = await opened.journal.append({ kind: "message", text: "goes on" }, { durability: "process" });
    await opened.journal.close();
    const again = await store.read(id);
    expect(again.recovery, `cut at ${cut}`).toEqual({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
    expect(again.records.map((record) => record.seq)).toEqual(Array.from({ length: seq + 1 }, (_, i) => i + 1));
  }
});

test("C1: cut inside a line of several megabytes", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false });
  const id = newId();
  const journal = await store.create(id, [{ kind: "session" }]);
  const { last: safe } = await journal.append({ kind: "message", text: "acknowledged" });
  await journal.append({ kind: "message", text: "🙂".repeat(2_000_000) });
  await journal.close();
  const folder = join(here.path, "sessions", id);
  const path = join(folder, "000001.jsonl");
  const whole = readFileSync(path);
  const from = whole.indexOf(`{"seq":${safe + 1},`);
  for (const cut of [from + 1, from + 1_000_001, from + 4_000_003, from + 7_999_999]) {
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    writeFileSync(path, whole.subarray(0, cut));
    const opened = await store.open(id);
    expect(opened.recovery.cutBytes).toBe(cut - from);
    expect(opened.records.at(-1)?.seq).toBe(safe);
    await opened.journal.append({ kind: "message" });
    await opened.journal.close();
    expect((await store.read(id)).recovery).toEqual({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
  }
});
