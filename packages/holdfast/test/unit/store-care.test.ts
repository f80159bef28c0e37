import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStore, type Store } from "../../src/index.ts";
import { place } from "../place.ts";

const words = (text: string) => ({ role: "user" as const, content: text });

async function spoken(store: Store): Promise<string> {
  const session = await store.create({ dialect: "anthropic" });
  const turn = await session.startTurn(words("one"));
  await turn.end();
  await session.replace([words("a summary")], { reason: "compaction" });
  await session.close();
  return session.id;
}

test("a torn end is healed without a look at the conversation, and its bytes are kept (P2)", async () => {
  using folder = place();
  await using store = await openStore(folder.path);
  const id = await spoken(store);
  appendFileSync(join(folder.path, "sessions", id, "000002.jsonl"), '{"seq":99,"at":"2026');
  expect((await store.verify(id)).cutBytes).toBe(20);
  const { cutBytes, quarantine } = await store.heal(id);
  expect(cutBytes).toBe(20);
  expect(readFileSync(quarantine!, "utf8")).toBe('{"seq":99,"at":"2026');
  expect((await store.verify(id)).cutBytes).toBe(0);
  expect((await store.heal(id)).cutBytes).toBe(0);
});

test("history has the records of earlier epochs too, and ends", async () => {
  using folder = place();
  await using store = await openStore(folder.path);
  const id = await spoken(store);
  const all = await Array.fromAsync(store.history(id));
  expect(all.map(({ seq }) => seq)).toEqual(all.map((_, i) => i + 1));
  expect(all.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["turn.started", "epoch"]));
  expect((await Array.fromAsync(store.history(id, 3)))[0]!.seq).toBe(3);
});

test("pack and heal are refused while somebody has the session; gc keeps what is younger than the grace time", async () => {
  using folder = place();
  await using store = await openStore(folder.path);
  const id = await spoken(store);
  const open = await store.resume(id);
  await expect(store.pack(id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await expect(store.heal(id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await open.close();
  expect(await store.pack(id)).toMatchObject({ segments: 1 });
  await store.delete(id);
  expect(await store.gc()).toEqual({ removed: [] });
  expect(await store.gc({ graceMs: 0 })).toEqual({ removed: [id] });
});
