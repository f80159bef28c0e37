import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { describe, expect, test } from "vitest";
import { type ErrorKind, errnoOf, errorCodes, errorKind, HoldfastError, isHoldfastError } from "../../src/errors.ts";

const page = readFileSync(new URL("../../../../docs/ERRORS.md", import.meta.url), "utf8");
const [, ...sections] = page.split(/^## /m);

describe("docs/ERRORS.md", () => {
  test("has an entry for each code, and no other, in alphabetical order", () => {
    const headings = sections.map((section) => section.slice(0, section.indexOf("\n")));
    expect(headings).toEqual([...errorCodes]);
    expect(headings).toEqual(headings.toSorted());
  });

  test.each(sections.map((section) => [section.slice(0, section.indexOf("\n")), section]))(
    "%s: what happened, is data safe, what to do, and the facts",
    (_code, section) => {
      const parts = [...section.matchAll(/^\*\*(.+?)\*\* (.+)/gm)];
      expect(parts.map(([, name]) => name)).toEqual(["What happened.", "Is data safe?", "What to do.", "Facts."]);
    },
  );
});

describe("errorKind", () => {
  const rows = [...page.matchAll(/^\| `(store|misuse|refusal)` \|.*\| (`.*`) \|$/gm)];

  test("says of each code what the table in docs/ERRORS.md says", () => {
    expect(rows.map(([, kind]) => kind)).toEqual(["store", "misuse", "refusal"]);
    const told = rows.flatMap(([, kind, codes]) =>
      [...codes!.matchAll(/`(\w+)`/g)].map(([, code]) => [code!, kind as ErrorKind] as const),
    );
    expect(told.map(([code]) => code).toSorted()).toEqual([...errorCodes]);
    for (const [code, kind] of told) expect(errorKind(new HoldfastError(code as never, "x")), code).toBe(kind);
  });

  test("of what is not Holdfast's, or of a newer version's", () => {
    expect(errorKind(new Error("x"))).toBe(null);
    expect(errorKind(undefined)).toBe(null);
    expect(errorKind(new HoldfastError("FROM_TOMORROW" as never, "x"))).toBe("misuse");
    expect(errorKind(new HoldfastError("constructor" as never, "x"))).toBe("misuse");
  });
});

describe("HoldfastError", () => {
  const cause = Object.assign(new Error("no space"), { code: "ENOSPC" });
  const error = new HoldfastError("STORE_FULL", "There is no space left.", { path: "/x" }, cause);

  test("is an Error with a code, facts and a cause", () => {
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: "HoldfastError", code: "STORE_FULL", facts: { path: "/x" }, cause });
    expect(String(error)).toBe("HoldfastError: There is no space left.");
    expect(Object.isFrozen(error.facts)).toBe(true);
    expect("cause" in new HoldfastError("STORE_IO", "x")).toBe(false);
  });

  test("its message is Unicode, whatever it quotes", () => {
    expect(new HoldfastError("STORE_IO", `no "${"😀".slice(0, 1)}"`, { path: "\ud83d" })).toMatchObject({
      message: 'no "\ufffd"',
      facts: { path: "\ud83d" },
    });
  });

  test("of a second copy of the library is one too", () => {
    class HoldfastError extends Error {
      override readonly name = "HoldfastError";
      readonly code = "SESSION_BUSY";
    }
    expect(isHoldfastError(new HoldfastError("x"), "SESSION_BUSY")).toBe(true);
    expect(isHoldfastError(new HoldfastError("x"), "STORE_IO")).toBe(false);
    expect(isHoldfastError({ name: "HoldfastError", code: "SESSION_BUSY" })).toBe(false);
  });

  test("is told by its code", () => {
    expect(isHoldfastError(error)).toBe(true);
    expect(isHoldfastError(error, "STORE_IO", "STORE_FULL")).toBe(true);
    expect(isHoldfastError(error, "STORE_IO")).toBe(false);
    expect(isHoldfastError(cause)).toBe(false);
    expect(isHoldfastError(undefined)).toBe(false);
  });

  test("errnoOf finds the code of a system error, and takes nothing else for one", () => {
    expect(errnoOf(cause)).toBe("ENOSPC");
    for (const other of [undefined, null, "ENOSPC", 5, {}, { code: 28 }, new Error("x")]) {
      expect(errnoOf(other)).toBeUndefined();
    }
  });

  test("errnoOf names what libuv has no name for, by its number", () => {
    const number = constants.errno.EDQUOT;
    expect(errnoOf({ code: "UNKNOWN", errno: -number })).toBe("EDQUOT");
    expect(errnoOf(new Error(`Disk quota exceeded (os error ${number})`))).toBe("EDQUOT");
    expect(errnoOf({ code: "UNKNOWN", errno: -4094 })).toBe("UNKNOWN");
    expect(errnoOf(new Error("Something else (os error 99999)"))).toBeUndefined();
  });
});
