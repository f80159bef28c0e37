import { expect, test } from "vitest";
import { mergePatch } from "../../../src/conversation/merge-patch.ts";

/** The examples of RFC 7396, appendix A, that have objects on both sides. */
test.each([
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
])("%j, patched with %j", (target, patch, expected) => {
  const before = JSON.stringify([target, patch]);
  expect(mergePatch(target, patch)).toEqual(expected);
  expect(JSON.stringify([target, patch])).toBe(before);
});

test("a name that an assignment would take for something else", () => {
  const patched = mergePatch({}, JSON.parse('{"__proto__":{"a":1}}'));
  expect(JSON.stringify(patched)).toBe('{"__proto__":{"a":1}}');
  expect(Object.getPrototypeOf(patched)).toBe(Object.prototype);
});
