import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Dialect, dialects, type HoldfastError, openStore, type Store } from "../../../src/index.ts";
import { place } from "../../place.ts";

const words = (text: string) => ({ role: "user" as const, content: text });

async function recorded(store: Store, dialect: "anthropic" | "openai-chat" = "anthropic"): Promise<string> {
  const session = await store.create({ dialect });
  await session.startTurn(words("one"));
  await session.close();
  return session.id;
}

const refused = { code: "DIALECT_UNKNOWN", facts: { dialect: "anthropic", named: "ai-sdk" } };

describe("a session is opened in the dialect that the caller names, or not at all", () => {
  const openings: Record<string, (store: Store, id: string) => Promise<unknown>> = {
    resume: (store, id) => store.resume(id, { dialect: "ai-sdk" }),
    resumeLatest: (store) => store.resumeLatest({}, { dialect: "ai-sdk" }),
    fork: (store, id) => store.fork(id, { dialect: "ai-sdk" }),
    read: (store, id) => store.read(id, { dialect: "ai-sdk" }),
  };
  test.each(Object.entries(openings))("%s refuses a session in another dialect", async (_, open) => {
    using folder = place();
    await using store = await openStore(folder.path);
    const id = await recorded(store);
    const file = join(folder.path, "sessions", id, "000001.jsonl");
    const before = readFileSync(file);
    const error = await open(store, id).catch((thrown: HoldfastError) => thrown);
    expect(error).toMatchObject(refused);
    expect(String(error)).toMatch('uses the dialect "anthropic", not "ai-sdk". Nothing was touched.');
    expect(readFileSync(file)).toEqual(before);
    expect((await store.list()).sessions).toHaveLength(1);
    // The lease is free, and the session opens in its own dialect.
    await using again = await store.resume(id, { dialect: "anthropic" });
    expect(again.messages[0]).toEqual(words("one"));
  });

  test("after a compaction too, when the dialect stands in the checkpoint", async () => {
    await using store = await openStore("memory:");
    const session = await store.create({ dialect: "anthropic" });
    await session.replace([words("a summary")], { reason: "compaction" });
    await session.close();
    await expect(store.resume(session.id, { dialect: "ai-sdk" })).rejects.toMatchObject(refused);
    expect((await store.read(session.id, { dialect: "anthropic" })).messages).toEqual([words("a summary")]);
  });

  test("resumeLatest passes over sessions in other dialects, and says which", async () => {
    await using store = await openStore("memory:");
    const wanted = await recorded(store, "openai-chat");
    const other = await recorded(store);
    const passedOver: string[] = [];
    const onPassedOver = (id: string) => passedOver.push(id);
    await using session = (await store.resumeLatest({}, { dialect: "openai-chat", onPassedOver }))!;
    expect(session.id).toBe(wanted);
    expect(passedOver).toEqual([other]);
  });

  test("a name that is not built in is refused before anything is opened", async () => {
    await using store = await openStore("memory:");
    const id = await recorded(store);
    for (const dialect of ["anthropics", "", "constructor", 7] as unknown as "anthropic"[]) {
      const unknown = {
        ...{ code: "DIALECT_UNKNOWN", facts: { dialect: String(dialect) } },
        message: expect.stringContaining("ai-sdk, anthropic, openai-chat"),
      };
      await expect(store.create({ dialect })).rejects.toMatchObject(unknown);
      await expect(store.resume(id, { dialect })).rejects.toMatchObject(unknown);
      await expect(store.resumeLatest({}, { dialect })).rejects.toMatchObject(unknown);
      await expect(store.fork(id, { dialect })).rejects.toMatchObject(unknown);
      await expect(store.read(id, { dialect })).rejects.toMatchObject(unknown);
    }
    expect(store.live(id)).toBeNull();
  });

  test("a store that was given a dialect of its own knows it by name", async () => {
    const own: Dialect<unknown> = { ...dialects.anthropic, name: "own" };
    await using store = await openStore("memory:", { dialects: [own] });
    const dialect = "own" as "anthropic";
    const session = await store.create({ dialect });
    expect(session.attributes.dialect).toBe("own");
    expect((await store.read(session.id, { dialect: own })).attributes.dialect).toBe("own");
  });

  test("a dialect object overrides the journal", async () => {
    await using store = await openStore("memory:");
    const id = await recorded(store);
    const own: Dialect<unknown> = { ...dialects.anthropic, name: "own" };
    await using session = await store.resume(id, { dialect: own });
    expect(session.attributes.dialect).toBe("anthropic");
    expect(session.messages[0]).toEqual(words("one"));
  });

  test("if the journal lost its dialect, the name gives it back", async () => {
    using folder = place();
    await using store = await openStore(folder.path);
    const id = await recorded(store);
    const file = join(folder.path, "sessions", id, "000001.jsonl");
    const naming = /^.*"kind":"(?:session|opened)".*$/gmu;
    writeFileSync(
      file,
      readFileSync(file, "utf8").replace(naming, (line) => "x".repeat(line.length)),
    );
    await expect(store.read(id)).rejects.toMatchObject({ code: "DIALECT_UNKNOWN", facts: { dialect: "" } });
    expect((await store.read(id, { dialect: "anthropic" })).entries[0]!.message).toEqual(words("one"));
  });
});
