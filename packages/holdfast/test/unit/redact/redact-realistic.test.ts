import { describe, expect, test } from "vitest";
import { credentials } from "../../../src/redact/find-credentials.ts";
import { HeldBack } from "../../../src/redact/held-back.ts";
import { PLACED_HARMLESS, PLACED_SECRETS } from "./redact-places.ts";
import { LOOKALIKES, SECRETS } from "./redact-realistic.ts";

/** Of 91 secrets 88, and of 82 harmless texts no more than 1: what was asked of each set. */
const FOUND_SHARE = 88 / 91;
const HIT_SHARE = 1 / 82;

describe.each([
  ["by issuer", SECRETS, LOOKALIKES],
  ["by place", PLACED_SECRETS, PLACED_HARMLESS],
])("what agents come across, %s", (_, secrets, harmless) => {
  test("nearly every secret is found", () => {
    const missed = secrets
      .filter(([, text, secret]) => credentials(`${text}\n`).includes(secret))
      .map(([name]) => name);
    expect(secrets.length).toBeGreaterThanOrEqual(91);
    expect(new Set(secrets.map(([, text]) => text)).size).toBe(secrets.length);
    expect(secrets.length - missed.length, `missed: ${missed.join(", ")}`).toBeGreaterThanOrEqual(
      Math.ceil(FOUND_SHARE * secrets.length),
    );
  });

  test("nearly nothing else is", () => {
    const hit = harmless.filter((text) => credentials(text) !== text).map((text) => credentials(text));
    expect(harmless.length).toBeGreaterThanOrEqual(82);
    expect(hit.length, `hit: ${hit.join("\n")}`).toBeLessThanOrEqual(Math.floor(HIT_SHARE * harmless.length));
  });

  test("in a stream that is cut in two at any place, the same comes out", () => {
    for (const [name, text] of secrets) {
      const long = `a ${text} z\n`;
      const whole = credentials(long);
      for (let at = 0; at <= long.length; at += text.length > 400 ? 7 : 1) {
        const held = new HeldBack(credentials);
        expect(held.push(long.slice(0, at)) + held.push(long.slice(at)) + held.end(), `${name} at ${at}`).toBe(whole);
      }
    }
  });
});
