import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "vitest";
import { HoldfastError } from "../../../../src/errors.ts";
import { Encoder } from "../../../../src/journal/lines/encode.ts";
import { charsOfSnapshot, isSnapshot, snapshot, snapshotAround } from "../../../../src/journal/lines/plain.ts";
import type { NewRecord } from "../../../../src/journal/record.ts";
import { AT } from "../journals.ts";

/** What JSON would change is refused, with its place, and nothing is written (S5). */

const encoder = new Encoder();

function encode(record: unknown): string {
  return encoder.encode([record as NewRecord], { seq: 1, at: AT }).toString();
}

function refusalOf(record: unknown): HoldfastError {
  try {
    encode(record);
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

class Point {
  x = 1;
}

const circle: Record<string, unknown> = { name: "a" };
circle["inner"] = { back: circle };
const ring: unknown[] = [1];
ring.push(ring);

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

describe("S5: what JSON would change is refused with its path", () => {
  const refused: [what: string, value: unknown, path: string, why: RegExp][] = [
    ["NaN", { a: [0, Number.NaN] }, "note.value.a[1]", /NaN/],
    ["Infinity", { a: Number.POSITIVE_INFINITY }, "note.value.a", /Infinity/],
    ["-Infinity", [Number.NEGATIVE_INFINITY], "note.value[0]", /-Infinity/],
    ["a BigInt", { big: 10n }, "note.value.big", /BigInt/],
    ["a Map", { deep: { map: new Map([["a", 1]]) } }, "note.value.deep.map", /Map/],
    ["a Set", new Set([1]), "note.value", /Set/],
    ["a Date", [new Date(0)], "note.value[0]", /Date/],
    ["a Uint8Array", { bytes: new Uint8Array(3) }, "note.value.bytes", /Uint8Array/],
    ["a Buffer", { bytes: Buffer.from("a") }, "note.value.bytes", /Buffer/],
    ["an ArrayBuffer", new ArrayBuffer(2), "note.value", /ArrayBuffer/],
    ["an Error", { error: new TypeError("x") }, "note.value.error", /TypeError/],
    ["a RegExp", /a/, "note.value", /RegExp/],
    ["a boxed string", Object("text"), "note.value", /String/],
    ["a function", { f: () => 1 }, "note.value.f", /function/],
    ["a symbol", [Symbol("s")], "note.value[0]", /symbol/],
    // biome-ignore lint/suspicious/noSparseArray: the hole is what is tested
    ["a hole in an array", [1, , 3], "note.value[1]", /undefined/],
    ["undefined in an array", [1, 2, undefined], "note.value[2]", /undefined/],
    ["an object that contains itself", circle, "note", /contains itself/],
    ["an array that contains itself", ring, "note", /contains itself/],
    ["a class instance", { p: new Point() }, "note.value.p", /Point/],
    ["an object with toJSON", { a: { toJSON: () => 1 } }, "note.value.a", /toJSON/],
    ["an array with toJSON", Object.assign([1], { toJSON: () => 2 }), "note.value", /toJSON/],
    ["an instance of a class of arrays", new (class Path extends Array {})(), "note.value", /Path/],
    ["a promise", Promise.resolve(1), "note.value", /Promise/],
  ];
  test.each(refused)("%s", (_what, value, path, why) => {
    const error = refusalOf({ kind: "note", value });
    expect(error.code).toBe("RECORD_NOT_JSON");
    expect(error.facts).toMatchObject({ path });
    expect(String(error.facts["why"])).toMatch(why);
    expect(error.message).toContain(path);
    expect(error.message).toContain("was not written");
  });

  test("the path names the kind of the record and starts at its members", () => {
    expect(refusalOf({ kind: "message", content: [{ data: new Uint8Array(1) }] }).facts["path"]).toBe(
      "message.content[0].data",
    );
  });

  test("a record that is itself a class instance", () => {
    expect(refusalOf(Object.assign(new Point(), { kind: "note" })).facts["path"]).toBe("note");
  });

  test("a record with a toJSON", () => {
    expect(refusalOf({ kind: "note", toJSON: () => ({}) }).facts["path"]).toBe("note");
  });
});

describe("S5: what JSON keeps is taken", () => {
  test("undefined members are dropped, at any depth", () => {
    expect(encode({ kind: "note", a: undefined, b: { c: undefined, d: [{ e: undefined }] } })).toContain(
      '"kind":"note","b":{"d":[{}]},"crc"',
    );
  });

  test("objects without a prototype, and objects of another realm", () => {
    const bare = Object.assign(Object.create(null), { a: 1 });
    const foreign = runInNewContext("({ b: [1, { c: 2 }] })");
    expect(encode({ kind: "note", bare, foreign })).toContain('"bare":{"a":1},"foreign":{"b":[1,{"c":2}]}');
  });

  test("a member called toJSON that is no function is data", () => {
    expect(encode({ kind: "note", value: { toJSON: "text" } })).toContain('"value":{"toJSON":"text"}');
  });

  test("the same object twice is not a cycle", () => {
    const shared = { a: 1 };
    expect(encode({ kind: "note", x: shared, y: [shared, shared] })).toContain('"x":{"a":1},"y":[{"a":1},{"a":1}]');
  });

  test("negative zero is stored as zero, which equals it", () => {
    expect(encode({ kind: "note", value: -0 })).toContain('"value":0');
  });

  test("1008 levels in a record are taken; one more is refused, and the limit is named", () => {
    expect(encode({ kind: "note", value: nested(1008) })).toContain('"value"');
    const error = refusalOf({ kind: "note", value: nested(1009) });
    expect(error.code).toBe("RECORD_NOT_JSON");
    expect(error.message).toContain("1009 levels");
  });

  test("nesting that would overflow the stack is refused like any other", () => {
    expect(refusalOf({ kind: "note", value: nested(200_000) }).code).toBe("RECORD_NOT_JSON");
  });
});

describe("a program that adds to Object.prototype", () => {
  afterEach(() => {
    Reflect.deleteProperty(Object.prototype, "extend");
    Reflect.deleteProperty(Object.prototype, "crc");
  });

  test("can still append: JSON does not see inherited members", () => {
    Object.assign(Object.prototype, { extend: () => 1, crc: "inherited" });
    expect(encode({ kind: "note", a: { b: 1 } })).toMatch(/"kind":"note","a":\{"b":1\},"crc":"[0-9a-f]{8}"\}\n$/);
  });

  test("still has its mistakes refused by name", () => {
    Object.assign(Object.prototype, { extend: () => 1 });
    expect(refusalOf({ kind: "note", a: { b: Number.NaN } }).facts["path"]).toBe("note.a.b");
  });
});

test("a list with holes is refused at its first one, where a dialect may encode everything else", () => {
  // biome-ignore lint/suspicious/noSparseArray: the hole is what is tested
  expect(() => snapshotAround({ parts: [1, , 3] }, "message")).toThrow(
    /message\.parts\[1\].*undefined|undefined.*message\.parts\[1\]/s,
  );
  expect(() => snapshotAround(new Array(1000), "message")).toThrow(/undefined/);
});

test("S5: a value that says it has a toJSON only when it is first asked is not taken for plain", () => {
  const make = (): object => {
    let asked = 0;
    return Object.defineProperty({ a: 1 }, "toJSON", { get: () => (asked++ === 0 ? () => 2 : undefined) });
  };
  expect(() => snapshot({ inner: make() }, "value")).toThrow(/at value\.inner, it would not come back from JSON/);
  const { isPlain } = snapshotAround({ inner: make() }, "value");
  expect(isPlain).toBe(false);
});

test("a snapshot that a getter makes meanwhile does not change what is known of the outer one", () => {
  const outer = {
    first: "a",
    get second() {
      return snapshotAround({ date: new Date(0) }, "inner").isPlain;
    },
    third: [1],
  };
  const { copy, isPlain } = snapshotAround(outer, "outer");
  expect(isPlain).toBe(true);
  expect(copy).toEqual({ first: "a", second: false, third: [1] });
  expect(isSnapshot(copy)).toBe(true);
  expect(charsOfSnapshot(copy)).toBe(charsOfSnapshot(snapshot({ first: "a", second: false, third: [1] }, "same")));
});
