import { execFileSync } from "node:child_process";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isHoldfastError, newId } from "holdfast";
import { registerScheme } from "holdfast/address";
import { openFolderStore, openSqliteStore } from "holdfast/internal";
import { openJournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { place, treeOf } from "../../place.ts";

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
    await using byShortUrl = await openJournalStore(String(pathToFileURL(folder)).replace("file:///", "file:/"));
    expect(await byShortUrl.has(id)).toBe(true);
    await using sqlite = await openJournalStore(`sqlite:${file}`);
    await (await sqlite.create(id, [{ kind: "session" }])).close();
    await using again = await openJournalStore(`sqlite://${file}`);
    expect(await again.has(id)).toBe(true);
    expect(existsSync(file)).toBe(true);
    await using memory = await openJournalStore("memory:");
    expect(memory.capabilities.durability).toBe("none");
  });

  test.each([
    "",
    "http://example.com/x",
    "postgresx://h/db",
    "sqlite:",
    "file://elsewhere/x",
    "file:here",
    "file:",
    "\0",
  ])("%j makes no sense, and touches nothing", async (address) => {
    using here = place();
    const before = process.cwd();
    process.chdir(here.path);
    try {
      await expect(openJournalStore(address)).rejects.toMatchObject({ code: "STORE_URL_INVALID" });
      expect(treeOf(here.path).size).toBe(0);
    } finally {
      process.chdir(before);
    }
  });

  test.each([openFolderStore, openSqliteStore])("%o takes no path that names nothing", async (open) => {
    using here = place();
    const before = process.cwd();
    process.chdir(here.path);
    try {
      for (const path of ["", "\0", null, 7]) {
        await expect(open(path as string)).rejects.toMatchObject({ code: "STORE_URL_INVALID" });
      }
      expect(treeOf(here.path).size).toBe(0);
    } finally {
      process.chdir(before);
    }
  });

  test("postgres: without its package says what to install, and shows no password", async () => {
    using here = place();
    // A copy of the library that stands alone.
    const source = fileURLToPath(new URL("../../../src", import.meta.url));
    cpSync(source, join(here.path, "src"), { recursive: true });
    writeFileSync(join(here.path, "package.json"), '{ "type": "module" }');
    writeFileSync(
      join(here.path, "try.ts"),
      `import { openJournalStore } from "./src/stores/open.ts";
      try { await openJournalStore("postgres://me:secret@127.0.0.1/db"); } catch (error) { console.log(error.code, error.message); }`,
    );
    const said = execFileSync(process.execPath, [join(here.path, "try.ts")], { encoding: "utf8" });
    expect(said).toMatch(/^STORE_URL_INVALID .*npm install @holdfast\/postgres/);
    expect(said).not.toContain("secret");
  });

  test("the keywords of libpq are refused, without the password, and no folder of that name is made", async () => {
    for (const address of ["host=db password=S3CRET", " dbname = x sslpassword='S3 CRET'", "password=S3CRET"]) {
      const error = await openJournalStore(address).catch((thrown: unknown) => thrown);
      expect(isHoldfastError(error, "STORE_URL_INVALID"), address).toBe(true);
      expect(JSON.stringify({ error, message: String(error) })).not.toMatch(/S3|CRET/u);
      expect(existsSync(address)).toBe(false);
    }
  });

  test("an address that is mistyped is shown without its password", async () => {
    const refused = openJournalStore("postgress://me:secret@127.0.0.1/db?password=secret");
    await expect(refused).rejects.toThrow(/^(?!.*secret).*postgress:\/\/me:…@127/);
  });
});

describe("a registered scheme", () => {
  test("opens another package's store, with the whole address and the options", async () => {
    const seen: unknown[] = [];
    registerScheme("Test-Box", (address, options) => {
      seen.push(address, options.app);
      return openJournalStore("memory:", options);
    });
    await using store = await openJournalStore("test-box://me@host/a?b=c", { app: "mine" });
    expect(store.url).toBe("memory:");
    expect(seen).toEqual(["test-box://me@host/a?b=c", "mine"]);
  });

  test.each(["file", "SQLITE", "memory", "postgres", "postgresql", "c", "", "a b", "a:b", "1a"])(
    "%j cannot be one",
    (scheme) => {
      expect(() => registerScheme(scheme, () => openJournalStore("memory:"))).toThrow(
        expect.objectContaining({ code: "STORE_URL_INVALID" }),
      );
    },
  );
});
