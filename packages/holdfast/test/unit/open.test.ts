import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { newId, openJournalStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { place, treeOf } from "../place.ts";

describe("the address of a store", () => {
  test("a path, a file URL and sqlite: name stores of their kinds, and the same ones again", async () => {
    using here = place();
    const folder = join(here.path, "a folder");
    const file = join(here.path, "one.db");
    const id = newId();
    await using byPath = await openJournalStore(folder);
    await (await byPath.create(id, [{ kind: "session" }])).close();
    await using byUrl = await openJournalStore(pathToFileURL(folder));
    expect(await byUrl.has(id)).toBe(true);
    await using sqlite = await openJournalStore(`sqlite:${file}`);
    await (await sqlite.create(id, [{ kind: "session" }])).close();
    await using again = await openJournalStore(`sqlite://${file}`);
    expect(await again.has(id)).toBe(true);
    expect(existsSync(file)).toBe(true);
    await using memory = await openJournalStore("memory:");
    expect(memory.capabilities.durability).toBe("none");
  });

  test.each(["", "http://example.com/x", "postgresx://h/db", "sqlite:", "file://elsewhere/x", "\0"])(
    "%j makes no sense, and touches nothing",
    async (address) => {
      using here = place();
      const before = process.cwd();
      process.chdir(here.path);
      try {
        await expect(openJournalStore(address)).rejects.toMatchObject({ code: "STORE_URL_INVALID" });
        expect(treeOf(here.path).size).toBe(0);
      } finally {
        process.chdir(before);
      }
    },
  );
});
