import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isHoldfastError, newId } from "holdfast";
import { openJournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { assertStorePlace } from "../../../src/disk/file-rules.ts";
import { place } from "../../place.ts";

const refusal = (work: () => void): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

describe("whose a store is", () => {
  test.each([
    [{ owner: 1000, group: 1000, mode: 0o700 }, 1000, true],
    [{ owner: 1000, group: 1000, mode: 0o755 }, 1000, true],
    [{ owner: 1000, group: 1000, mode: 0o775 }, 1000, true],
    [{ owner: 1000, group: 50, mode: 0o755 }, 1000, true],
    [{ owner: 1000, group: 50, mode: 0o770 }, 1000, false],
    [{ owner: 1000, group: 1000, mode: 0o777 }, 1000, false],
    [{ owner: 1000, group: 1000, mode: 0o1777 }, 1000, false],
    [{ owner: 1001, group: 1001, mode: 0o755 }, 1000, false],
    [{ owner: 1001, group: 1000, mode: 0o700 }, 1000, false],
    [{ owner: 0, group: 0, mode: 0o755 }, 1000, true],
    [{ owner: 0, group: 0, mode: 0o777 }, 1000, false],
    [{ owner: 1000, group: 1000, mode: 0o700 }, 0, true],
    [{ owner: 1000, group: 1000, mode: 0o777 }, 0, false],
    [{ owner: 0, group: 0, mode: 0o1777 }, 0, false],
    [{ mode: 0o777 }, 1000, true],
    [null, 1000, true],
  ])("%j, opened by %s: taken: %s", (found, user, isTaken) => {
    const error = refusal(() => assertStorePlace("/store", found, user));
    expect(isHoldfastError(error, "STORE_FORBIDDEN")).toBe(!isTaken);
    if (!isTaken) expect(String(error)).toMatch(/\/store.* It was not opened, and nothing was touched\./u);
  });

  test("a folder that everybody can write to is refused, by its name and by a link, and nothing is made in it", async (context) => {
    if (process.platform === "win32") context.skip("not run: Windows has no such modes");
    using here = place();
    const open = join(here.path, "open");
    mkdirSync(open);
    chmodSync(open, 0o777);
    symlinkSync(open, join(here.path, "link"));
    for (const name of ["open", "link"]) {
      const error = await openJournalStore(join(here.path, name)).catch((thrown: unknown) => thrown);
      expect(isHoldfastError(error, "STORE_FORBIDDEN"), name).toBe(true);
      expect(String(error)).toContain("its mode is 0777");
    }
    expect(readdirSync(open)).toEqual([]);
    chmodSync(open, 0o755);
    await (await openJournalStore(open)).close();
    chmodSync(join(open, "sessions"), 0o777);
    await expect(openJournalStore(open)).rejects.toThrow(/sessions .*its mode is 0777/u);
  });

  test("so is a database file that everybody can write to", async (context) => {
    if (process.platform === "win32") context.skip("not run: Windows has no such modes");
    using here = place();
    const file = join(here.path, "s.db");
    const store = await openJournalStore(`sqlite:${file}`);
    await (await store.create(newId(), [{ kind: "session" }])).close();
    await store.close();
    chmodSync(file, 0o666);
    const error = await openJournalStore(`sqlite:${file}`).catch((thrown: unknown) => thrown);
    expect(isHoldfastError(error, "STORE_FORBIDDEN")).toBe(true);
    chmodSync(file, 0o600);
    await (await openJournalStore(`sqlite:${file}`)).close();
  });

  test("a store of another user is refused, and root's is not", async (context) => {
    if (process.geteuid?.() !== 0) context.skip("not run: only root can make a store of another user");
    using here = place();
    chmodSync(here.path, 0o755);
    const theirs = join(here.path, "theirs");
    mkdirSync(theirs);
    chownSync(theirs, 4711, 4711);
    const file = join(here.path, "theirs.db");
    writeFileSync(file, "");
    chownSync(file, 4711, 4711);
    mkdirSync(join(here.path, "roots/sessions"), { recursive: true });
    process.seteuid!(65534);
    try {
      for (const address of [theirs, `sqlite:${file}`]) {
        const error = await openJournalStore(address).catch((thrown: unknown) => thrown);
        expect(isHoldfastError(error, "STORE_FORBIDDEN"), address).toBe(true);
        expect(String(error)).toContain("belongs to another user (uid 4711");
      }
      await (await openJournalStore(join(here.path, "roots"))).close();
    } finally {
      process.seteuid!(0);
    }
    expect(existsSync(join(theirs, "sessions"))).toBe(false);
  });
});
