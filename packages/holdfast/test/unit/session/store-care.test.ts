import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { dialects, openStore, type Store } from "../../../src/index.ts";
import { place } from "../../place.ts";

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

test("an option that means nothing is refused, and not taken for another", async () => {
  const wrong = [{ durability: "powr" }, { durability: "none" }, { recordsToolStarts: "yes" }] as never[];
  for (const options of wrong)
    await expect(openStore("memory:", options)).rejects.toMatchObject({
      ...{ code: "RECORD_INVALID", message: expect.stringContaining(`option "${Object.keys(options)[0]}" must be`) },
    });
});

test("null in place of options is as good as none, and an id that is no text is refused in our words", async () => {
  await using store = await openStore("memory:");
  const nothing = null as unknown as undefined;
  const id = await spoken(store);
  await (await store.resume(id, nothing)).close();
  const session = (await store.resumeLatest(nothing as unknown as object, nothing))!;
  expect(session.id).toBe(id);
  for await (const { seq } of session.follow(nothing)) {
    expect(seq).toBe(1);
    break;
  }
  const at = Symbol("message") as unknown as string;
  await expect(store.fork(id, { at })).rejects.toMatchObject({ code: "MESSAGE_UNKNOWN" });
  expect((await store.fork(id, nothing)).id).not.toBe(id);
});

test("a session whose dialect is lost says what is missing, and can be resumed in a dialect that is given", async () => {
  using folder = place();
  await using store = await openStore(folder.path);
  const session = await store.create({ dialect: "anthropic" });
  await (await session.startTurn(words("one"))).end();
  await session.close();
  const file = join(folder.path, "sessions", session.id, "000001.jsonl");
  const naming = /^.*"kind":"(?:session|opened)".*$/gmu;
  const text = readFileSync(file, "utf8").replace(naming, (line) => "x".repeat(line.length));
  writeFileSync(file, text);
  await expect(store.resume(session.id)).rejects.toThrow("does not say which dialect");
  await expect(store.read(session.id)).rejects.toMatchObject({ code: "DIALECT_UNKNOWN", facts: { dialect: "" } });
  const again = await store.resume(session.id, { dialect: dialects.anthropic });
  expect(again.messages).toEqual([words("one")]);
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
