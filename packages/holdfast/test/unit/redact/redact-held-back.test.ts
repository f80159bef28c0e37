import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LONGEST_SHAPE_CHARS } from "../../../src/redact/credential-shapes.ts";
import { credentials } from "../../../src/redact/find-credentials.ts";
import { HELD_BACK_CHARS, HeldBack } from "../../../src/redact/held-back.ts";
import { redactorOf } from "../../../src/redact/redactor.ts";
import { holds, seedOf } from "../../seed.ts";
import { pieces, redactable, sizes } from "./redact-arbitraries.ts";
import { noise, PEM, SAMPLES } from "./redact-samples.ts";

const seed = seedOf(import.meta.url, "unit");

const CUT_OFF = "[redacted:cut-off]";

function streamed(held: HeldBack, parts: readonly string[]): string[] {
  return [...parts.map((part) => held.push(part)), held.end()];
}

describe("a stream under the built-in set", () => {
  test.each(SAMPLES)("$name, letter by letter", ({ text, redacted }) => {
    const out = streamed(new HeldBack(credentials), Array.from(`words ${text} more`));
    expect(out.join("")).toBe(`words ${redacted} more`);
  });

  test("any text in any pieces comes out as the whole text does, and what is out is never taken back", () => {
    holds(
      fc.property(redactable, sizes, ({ text, secrets }, cut) => {
        const out = streamed(new HeldBack(credentials), pieces(text, cut));
        const whole = credentials(text);
        const all = out.join("");
        // What may be the beginning of a credential where the text ends is replaced; all else is the same.
        if (all !== whole) {
          expect(all.endsWith(CUT_OFF)).toBe(true);
          expect(whole.startsWith(all.slice(0, -CUT_OFF.length))).toBe(true);
        }
        let soFar = "";
        for (const piece of out) {
          soFar += piece;
          for (const secret of secrets) expect(soFar).not.toContain(secret.slice(0, 16));
        }
      }),
      seed,
      3000,
    );
  });

  test("cut in two at every place", () => {
    for (const { text, redacted } of SAMPLES) {
      for (let at = 0; at <= text.length; at++) {
        const out = streamed(new HeldBack(credentials), [`a ${text.slice(0, at)}`, `${text.slice(at)} z`]);
        expect(out.join("")).toBe(`a ${redacted} z`);
      }
    }
  });

  test("what was handed out already still counts: no token begins inside a word, nor behind a marker", () => {
    const text = `aghp_${noise(36)} task-sk-${noise(40)} [redacted:jwt]ghp_${noise(36)} line\\nghp_${noise(36)}`;
    const out = streamed(new HeldBack(credentials), Array.from(text)).join("");
    expect(out).toBe(credentials(text));
    expect(out).toBe(text.replace(/ghp_\w+$/, "[redacted:github]"));
  });

  test("prose does not wait: what is held back is the beginning of a shape", () => {
    const held = new HeldBack(credentials);
    expect(held.push("The file is read, and then it is written. ")).toBe("The file is read, and then it is written. ");
    expect(held.push("Its owner is ghp")).toBe("Its owner is ");
    expect(held.push("ost.")).toBe("ghpost.");
    expect(held.push("A password: ")).toBe("A ");
    expect(held.push("none. ")).toBe("password: none. ");
  });

  test("no more waits than twice the longest shape", () => {
    const endless = [
      ["-----BEGIN PRIVATE KEY-----", "ab "],
      ["-----BEGIN PRIVATE KEY-----", noise(64)],
      ["eyJ", "a"],
      ["sk-ant-", "a"],
      ["token=", "a"],
      ["password", " "],
      ["://", "a"],
      ["AKIA", "A"],
    ] as const;
    for (const [start, more] of endless) {
      const held = new HeldBack(credentials);
      let given = held.push(start).length;
      const text = more.repeat(Math.ceil((2 * LONGEST_SHAPE_CHARS) / more.length));
      for (const piece of pieces(text, [1000])) given += held.push(piece).length;
      expect(given).toBeGreaterThan(0);
    }
  });

  test("a key of many lines is held until its end", () => {
    const held = new HeldBack(credentials);
    const before = PEM.slice(0, -3);
    for (const piece of pieces(before, [7])) expect(held.push(piece)).toBe("");
    expect(held.push("--- yes.") + held.end()).toBe("[redacted:private-key] yes.");
  });

  test.each([
    { name: "a token", before: "It is ", kept: "", hidden: `ghp_${noise(8)}` },
    { name: "a token of one letter", before: "It is ", kept: "", hidden: "ghp_a" },
    { name: "a value", before: "The ", kept: "password: ", hidden: "c0rr" },
    { name: "a value in quotes", before: "", kept: '{"api_key": "', hidden: noise(5) },
    { name: "a key", before: "", kept: "", hidden: `${PEM.slice(0, 45)}` },
    { name: "the password of an address", before: "see ", kept: "postgres://app:", hidden: "s3cr" },
    { name: "a header", before: "", kept: "Authorization: Bearer ", hidden: noise(5) },
  ])("a stream that is cut off in the middle of $name", ({ before, kept, hidden }) => {
    const held = new HeldBack(credentials);
    const out = held.push(before + kept + hidden) + held.end();
    expect(out).not.toContain(hidden);
    expect(out).toContain(CUT_OFF);
    expect(out.startsWith(before)).toBe(true);
  });

  test.each(["It is g", "It is ghp_", "The password: ", '{"api_key": "', "Authorization: Bearer ", "-----BEGIN RSA"])(
    "what only says the kind of a secret stays when the stream is cut off: %s",
    (text) => {
      const held = new HeldBack(credentials);
      expect(held.push(text) + held.end()).toBe(text);
    },
  );

  test("no more than the prefix of any secret is ever out, wherever the stream is cut off", () => {
    for (const { text, secret } of SAMPLES) {
      const start = text.indexOf(secret);
      if (start < 0 || secret.length < 12) continue;
      for (let at = 1; at <= secret.length; at++) {
        const held = new HeldBack(credentials);
        const out = held.push(`a ${text.slice(0, start + at)}`) + held.end();
        expect(out, `${text.slice(0, 30)} cut at ${at}`).not.toContain(
          text.slice(0, start).slice(-8) + secret.slice(0, at),
        );
      }
    }
  });

  test("a stream that ends in the middle of a key", () => {
    const held = new HeldBack(credentials);
    expect(held.push(PEM.slice(0, 500))).toBe("");
    expect(held.end()).toBe("[redacted:private-key]");
    expect(held.push("next ")).toBe("next ");
  });
});

/** How many characters the expressions read while this runs. */
function charactersRead(run: () => void): number {
  let characters = 0;
  const { exec } = RegExp.prototype;
  RegExp.prototype.exec = function (this: RegExp, text: string) {
    const from = this.lastIndex;
    const match = exec.call(this, text);
    if (match) characters += match.index + match[0].length - from;
    else characters += this.sticky ? 1 : text.length - from;
    return match;
  };
  try {
    run();
  } finally {
    RegExp.prototype.exec = exec;
  }
  return characters;
}

describe("what a stream costs", () => {
  const hostile = [
    ["a key without end", ["-----BEGIN PRIVATE", " KEY-----\n"].join("") + `${noise(64)}\n`.repeat(400)],
    ["many beginnings of keys", ["-----BEGIN PRIVATE", " KEY-----\n"].join("").repeat(1500)],
    ["a token without end", `token=${"a".repeat(40_000)}`],
    ["many tokens", `sk-ant-${"a".repeat(3000)} `.repeat(12)],
    ["three parts that never come", `eyJ${"a".repeat(2000)}.${"a".repeat(8000)}.`.repeat(4)],
    ["names", "password        ".repeat(2500)],
    ["addresses", "://a:b".repeat(6000)],
    ["cookies", `cookie: ${"a=1; ".repeat(800)}\n`.repeat(8)],
    ["PuTTY", `Private-Lines: 9\n${`${noise(64)}\n`.repeat(600)}`],
    ["prose", "The password is in the file, and the token: none. ".repeat(800)],
  ] as const;
  test.each(hostile)("%s: at most three times the whole, in pieces of any size", (_, text) => {
    const whole = charactersRead(() => credentials(text));
    expect(whole).toBeGreaterThanOrEqual(text.length / 2);
    for (const size of [1, 5, 64, 1000]) {
      const held = new HeldBack(credentials);
      let out = "";
      const read = charactersRead(() => {
        for (const piece of pieces(text, [size])) out += held.push(piece);
        out += held.end();
      });
      expect(read / whole, `pieces of ${size}`).toBeLessThanOrEqual(3);
      expect(out === credentials(text) || out.endsWith(CUT_OFF)).toBe(true);
    }
  });
});

describe("a stream under an application's own function", () => {
  const names = redactorOf((text) => text.replaceAll(/Ada Lovelace( the Countess)?/g, "[name]"))!;

  test("any text in any pieces, with things to take out that are shorter than what is held back", () => {
    const word = fc.constantFrom(
      "Ada ",
      "Lovelace",
      " the Countess",
      "Ada Lovelace",
      " wrote",
      " it.\n",
      "x".repeat(300),
    );
    holds(
      fc.property(fc.array(word, { maxLength: 60 }), sizes, (words, cut) => {
        const text = words.join("");
        const out = streamed(new HeldBack(names), pieces(text, cut));
        expect(out.join("")).toBe(names(text));
      }),
      seed,
      500,
    );
  });

  test("holds back at least its constant, and at most twice that and a piece", () => {
    const held = new HeldBack(names);
    let given = 0;
    for (let pushed = 100; pushed <= 10_000; pushed += 100) {
      given += held.push("word ".repeat(20)).length;
      if (given > 0) expect(pushed - given).toBeGreaterThanOrEqual(HELD_BACK_CHARS);
      expect(pushed - given).toBeLessThanOrEqual(2 * HELD_BACK_CHARS + 100);
    }
  });

  test("a function that answers the same whatever it is given writes nothing in clear, and memory stays bounded", () => {
    const held = new HeldBack(redactorOf(() => "[private]")!);
    const out = streamed(held, pieces("secret words ".repeat(10_000), [50]));
    expect(out.join("").replaceAll("[private]", "")).toBe("");
    expect(out.filter((piece) => piece !== "").length).toBeGreaterThan(1);
  });

  test("a function that finds no place to split is given each character a few times only", () => {
    const text = "secret words ".repeat(10_000);
    let given = 0;
    const counting = redactorOf((part) => {
      given += part.length;
      return `[${part.length}]`;
    })!;
    streamed(new HeldBack(counting), pieces(text, [5]));
    expect(given / text.length).toBeLessThanOrEqual(8);
  });

  test("a function that throws", () => {
    const held = new HeldBack(
      redactorOf(() => {
        throw new Error("no");
      })!,
    );
    const out = streamed(held, pieces("secret words ".repeat(10_000), [50])).join("");
    expect(out.replaceAll("[redacted: the redactor failed]", "")).toBe("");
  });

  test("no character is cut in two", () => {
    const held = new HeldBack(redactorOf((text) => text)!);
    const out = streamed(held, pieces(`a${"😀".repeat(2000)}`, [101]));
    for (const piece of out.slice(0, -1)) expect(piece.isWellFormed()).toBe(true);
    expect(out.join("")).toBe(`a${"😀".repeat(2000)}`);
  });
});
