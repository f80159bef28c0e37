import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/errors.ts";
import { assertId, isId, newId } from "../../../src/journal/id.ts";

describe("a new id", () => {
  test("is a UUIDv7 in lower case", () => {
    for (let i = 0; i < 1000; i++) {
      const id = newId();
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(isId(id)).toBe(true);
    }
  });

  test("holds its time, to the millisecond", () => {
    const nowMs = Date.UTC(2026, 10, 15, 2, 30, 0, 123);
    expect(Number.parseInt(newId(nowMs).replaceAll("-", "").slice(0, 12), 16)).toBe(nowMs);
    expect(newId(0)).toMatch(/^00000000-0000-7/);
    expect(newId(2 ** 48 - 1)).toMatch(/^ffffffff-ffff-7/);
  });

  test("sorts by its time", () => {
    const times = [0, 1, 255, 256, 65_535, 1_699_999_999_999, 1_700_000_000_000, 2_000_000_000_000, 2 ** 48 - 1];
    const ids = times.map((time) => newId(time));
    expect(ids.toSorted()).toEqual(ids);
  });

  test("sorts behind those that this process made before it, also within a millisecond", () => {
    for (let round = 0; round < 20; round++) {
      newId(8);
      const ids = Array.from({ length: 2_000 }, () => newId(9));
      expect(ids.toSorted()).toEqual(ids);
    }
  });

  test("is not the same twice within a millisecond", () => {
    expect(new Set(Array.from({ length: 10_000 }, () => newId(5))).size).toBe(10_000);
  });
});

describe("C24: what is no id is refused, in words, before anything is touched", () => {
  const good = newId();
  const bad: [what: string, id: unknown][] = [
    ["a path", "../../etc/x"],
    ["a path behind an id", `${good}/../x`],
    ["an absolute path", "/etc/passwd"],
    ["an id with a newline behind it", `${good}\n`],
    ["an id with a NUL byte behind it", `${good}\0`],
    ["an id in capitals", good.toUpperCase()],
    ["an id in braces", `{${good}}`],
    ["an id without dashes", good.replaceAll("-", "")],
    ["an id with letters beyond f", good.replace(/^./, "g")],
    ["digits of another script", good.replace(/^./, "٣")],
    ["an empty string", ""],
    ["a dot", "."],
    ["undefined", undefined],
    ["null", null],
    ["a number", 5],
    ["a symbol", Symbol("id")],
    ["an object without a prototype", Object.create(null)],
    ["an object that passes itself off as an id", { toString: () => good }],
    ["an array with an id", [good]],
    ["a very long text", "x".repeat(1_000_000)],
  ];
  test.each(bad)("%s", (_what, id) => {
    expect(isId(id)).toBe(false);
    const error = refusalOf(id);
    expect(error.code).toBe("ID_INVALID");
    expect(error.message).toContain("UUID");
    expect(error.message.length).toBeLessThan(700);
  });

  test("what is shown of it is harmless in a terminal", () => {
    const error = refusalOf("\u001b[2J\u009b31m\u202e\n");
    expect(error.message).toMatch(/^[\x20-\x7e]+$/);
    expect(error.facts["id"]).toBe("\u001b[2J\u009b31m\u202e\n");
  });

  test("an id passes", () => {
    expect(() => assertId(good)).not.toThrow();
  });
});

function refusalOf(id: unknown): HoldfastError {
  try {
    assertId(id as string);
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}
