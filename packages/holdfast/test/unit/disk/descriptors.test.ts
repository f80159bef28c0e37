import { mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId, openStore, type Store } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../place.ts";
import { nestedText, putSession, turnBodies } from "../../raw-session.ts";

/** The files below this folder that the process has open, each as often as it has. */
function openBelow(folder: string): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(join("/proc/self/fd", fd));
      return path.startsWith(folder) ? [path] : [];
    } catch {
      // The descriptor that the folder itself was read by.
      return [];
    }
  });
}

async function goodSession(store: Store, words: string): Promise<string> {
  const session = await store.create({ dialect: "ai-sdk" });
  await (await session.startTurn({ role: "user", content: words })).end();
  await session.close();
  return session.id;
}

const addresses: Readonly<Record<string, (path: string) => string>> = {
  "a folder": (path) => join(path, "store"),
  "an SQLite file": (path) => `sqlite:${join(path, "store.db")}`,
};

for (const [name, addressOf] of Object.entries(addresses)) {
  test(`the number of open files does not grow with lists, searches, looks and refusals: ${name}`, async (context) => {
    if (process.platform !== "linux") context.skip("not run: counts descriptors in /proc");
    using here = place();
    const store = await openStore(addressOf(here.path));
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await goodSession(store, `words ${i}`));
    if (name === "a folder") {
      putSession(join(here.path, "store"), turnBodies({ prompt: nestedText(200_000) }));
      putSession(join(here.path, "store"), turnBodies({ end: ',"summary":5' }));
      mkdirSync(join(here.path, "store", "sessions", newId(), "000001.jsonl"), { recursive: true });
    }
    const spoil = (i: number): void => {
      if (name !== "a folder" || i % 5 !== 0) return;
      for (const one of ["catalog.sqlite", "search.sqlite"]) {
        for (const ending of ["-wal", "-shm"]) rmSync(join(here.path, "store", one + ending), { force: true });
        writeFileSync(join(here.path, "store", one), "spoiled".repeat(1000));
      }
    };
    const round = async (i: number): Promise<void> => {
      spoil(i);
      await store.list();
      await Array.fromAsync(store.search("words"));
      for (const id of ids) {
        await store.read(id);
        await store.verify(id);
        await (await store.resume(id)).close();
        await store.has(id);
      }
      await store.read("0199aaaa-0001-7bbb-8000-000000000009").catch(() => undefined);
      await store.resume("0199aaaa-0001-7bbb-8000-000000000009").catch(() => undefined);
      for await (const _ of store.history(ids[0]!)) break;
      const busy = await store.resume(ids[0]!);
      await store.resume(ids[0]!).catch(() => undefined);
      await busy.close();
    };
    for (let i = 1; i < 4; i++) await round(i);
    const before = openBelow(here.path).sort();
    for (let i = 5; i < 21; i++) await round(i);
    await store.list();
    // What SQLite has open of a file that was spoiled, and made again, is not more than before.
    expect(openBelow(here.path).length).toBeLessThanOrEqual(before.length + 1);
    await store.close();
    expect(openBelow(here.path)).toEqual([]);
  });
}
