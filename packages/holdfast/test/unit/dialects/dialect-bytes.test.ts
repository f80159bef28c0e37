import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeBytes, encodeBytes } from "../../../src/dialects/bytes.ts";
import { phrase } from "../../../src/dialects/order/phrase.ts";
import { holds, seedOf } from "../../seed.ts";
import { plainName } from "../journal/arbitraries.ts";

const seed = seedOf(import.meta.url, "unit");

function there(value: unknown): unknown {
  return decodeBytes(JSON.parse(JSON.stringify(encodeBytes(value))));
}

describe("bytes and URLs in messages (R19, C39)", () => {
  test("come back as they were, each as its own class", () => {
    const view = new Uint8Array([0, 1, 2, 3]).subarray(1, 3);
    const message = {
      a: view,
      b: Buffer.from("hi"),
      c: new Uint8Array([9]).buffer,
      d: new URL("https://x/y?z"),
      e: [new Uint8Array(0)],
    };
    const back = there(message) as typeof message;
    expect(back).toEqual({ ...message, a: new Uint8Array([1, 2]) });
    expect(Buffer.isBuffer(back.a)).toBe(false);
    expect(Buffer.isBuffer(back.b)).toBe(true);
    expect(back.c).toBeInstanceOf(ArrayBuffer);
    expect(back.d).toBeInstanceOf(URL);
  });

  test("an object that looks like encoded bytes comes back as it was, too", () => {
    const message = {
      $holdfast: "Uint8Array",
      base64: "AAAA",
      inner: { $holdfast: "object", of: new Uint8Array([7]) },
    };
    expect(there(message)).toEqual(message);
  });

  test("without bytes nothing is copied", () => {
    const message = { role: "user", content: [{ type: "text", text: "x" }] };
    expect(encodeBytes(message)).toBe(message);
    expect(decodeBytes(message)).toBe(message);
  });

  test("what else JSON cannot carry is left where it is, for the caller to refuse", () => {
    const date = new Date(0);
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const floats = new Float32Array(1);
    const message = { date, cycle, floats, n: 1n, none: undefined };
    expect(encodeBytes(message)).toBe(message);
    expect(encodeBytes({ date, bytes: new Uint8Array([1]) })).toHaveProperty("date", date);
  });

  test("a tag that is not well formed is left as it is", () => {
    for (const odd of [
      { $holdfast: "URL", href: "::" },
      { $holdfast: "Uint8Array" },
      { $holdfast: 1, base64: "AA==" },
    ]) {
      expect(decodeBytes(odd)).toEqual(odd);
    }
  });

  test("for anything that is made of JSON and bytes", () => {
    const leaf = fc.oneof(
      fc.string(),
      fc.uint8Array(),
      fc.webUrl().map((url) => new URL(url)),
      fc.constant("$holdfast"),
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie("tree"), { maxLength: 3 }),
        fc.dictionary(fc.oneof(plainName, fc.constantFrom("$holdfast", "of", "base64", "__proto__")), tie("tree"), {
          maxKeys: 3,
          noNullPrototype: true,
        }),
      ),
    }));
    holds(
      fc.property(tree, (value) => {
        expect(there(value)).toEqual(value);
      }),
      seed,
      500,
    );
  });
});

describe("what a tool came to", () => {
  test("whatever it returns or throws, there are words for it", () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const hostile = {
      get message(): string {
        throw new Error("no");
      },
      toString: null,
      toJSON: () => {
        throw new Error("no");
      },
    };
    expect(phrase({ value: cycle }).text).toBe("[object Object]");
    expect(phrase({ value: () => 1 }).text).toContain("=>");
    expect(phrase({ error: hostile })).toEqual({
      failed: true,
      text: "(a value that cannot be printed)",
      json: "(a value that cannot be printed)",
    });
    expect(phrase({ error: new Error("") }).text).toBe("Error");
    expect(phrase({ error: null }).text).toBe("null");
    expect(phrase(null as never)).toEqual({ failed: false, text: "", json: null });
  });

  test("the value is a copy: what the tool changes later changes nothing", () => {
    const value = { n: [1] };
    const { json } = phrase({ value });
    value.n.push(2);
    expect(json).toEqual({ n: [1] });
  });
});
