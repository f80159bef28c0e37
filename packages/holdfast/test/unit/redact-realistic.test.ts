import { describe, expect, test } from "vitest";
import { credentials } from "../../src/redact/find-credentials.ts";
import { HeldBack } from "../../src/redact/held-back.ts";
import { LOOKALIKES, SECRETS } from "./redact-realistic.ts";

/** Of 91 secrets 85, and of 82 harmless texts no more than 2: what was asked of the set. */
const FOUND_SHARE = 85 / 91;
const HIT_SHARE = 2 / 82;

describe("what agents come across", () => {
  test("nearly every secret is found", () => {
    const missed = SECRETS.filter(([, text, secret]) => credentials(`${text}\n`).includes(secret)).map(
      ([name]) => name,
    );
    expect(SECRETS.length).toBeGreaterThanOrEqual(91);
    expect(SECRETS.length - missed.length, `missed: ${missed.join(", ")}`).toBeGreaterThanOrEqual(
      Math.ceil(FOUND_SHARE * SECRETS.length),
    );
  });

  test("nearly nothing else is", () => {
    const hit = LOOKALIKES.filter((text) => credentials(text) !== text).map((text) => credentials(text));
    expect(LOOKALIKES.length).toBeGreaterThanOrEqual(82);
    expect(hit.length, `hit: ${hit.join("\n")}`).toBeLessThanOrEqual(Math.floor(HIT_SHARE * LOOKALIKES.length));
  });

  test("in a stream that is cut in two at any place, the same comes out", () => {
    for (const [name, text] of SECRETS) {
      const long = `a ${text} z\n`;
      const whole = credentials(long);
      for (let at = 0; at <= long.length; at += text.length > 400 ? 7 : 1) {
        const held = new HeldBack(credentials);
        expect(held.push(long.slice(0, at)) + held.push(long.slice(at)) + held.end(), `${name} at ${at}`).toBe(whole);
      }
    }
  });
});
