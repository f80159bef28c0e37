import fc from "fast-check";
import { openStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { allShapes, SCHEMES } from "../../../src/redact/credential-shapes.ts";
import { credentials } from "../../../src/redact/find-credentials.ts";
import { REDACTOR_FAILED, redactorOf } from "../../../src/redact/redactor.ts";
import { holds, seedOf } from "../../seed.ts";
import { redactable } from "./redact-arbitraries.ts";
import { PLACED_SECRETS } from "./redact-places.ts";
import { SECRETS } from "./redact-realistic.ts";
import { HARMLESS, noise, SAMPLES } from "./redact-samples.ts";

const seed = seedOf(import.meta.url, "unit");

describe("credentials", () => {
  test.each(SAMPLES)("$name", ({ text, redacted }) => {
    expect(credentials(text)).toBe(redacted);
    expect(credentials(`words ${text} more`)).toBe(`words ${redacted} more`);
    expect(credentials(`"${text}"\n`)).toBe(`"${redacted}"\n`);
  });

  test("every kind has a sample", () => {
    const kindIn = (redacted: string): string | undefined => /\[redacted:([a-z-]+)\]/.exec(redacted)?.[1];
    const shown = new Set([
      ...SAMPLES.map(({ redacted }) => kindIn(redacted)),
      ...[...SECRETS, ...PLACED_SECRETS].map(([, text]) => kindIn(credentials(text))),
    ]);
    const without = [...new Set(allShapes().map(({ kind }) => kind))].filter((kind) => !shown.has(kind));
    expect(without).toEqual([]);
  });

  test.each(SCHEMES)("the scheme %s has a sample behind the header", (scheme) => {
    const header = new RegExp(`authorization["']?: ["']?${scheme} `, "i");
    expect(SAMPLES.filter(({ text }) => header.test(text)).map(({ name }) => name)).not.toEqual([]);
  });

  test.each(HARMLESS)("stays: %s", (text) => {
    expect(credentials(text)).toBe(text);
  });

  test("a token behind the escape of a line break", () => {
    expect(credentials(String.raw`{"out":"line\nghp_${noise(36)}\n"}`)).toBe(
      String.raw`{"out":"line\n[redacted:github]\n"}`,
    );
  });

  test("not inside a longer word: ids and hashes that happen to hold a prefix", () => {
    const text = `xAKIA${"A".repeat(16)} aghp_${noise(36)} task-sk-${noise(40)}`;
    expect(credentials(text)).toBe(text);
  });

  test("several, next to each other", () => {
    const text = SAMPLES.map((sample) => sample.text).join("\n;\n");
    expect(credentials(text)).toBe(SAMPLES.map(({ redacted }) => redacted).join("\n;\n"));
  });

  test("redacting twice changes nothing, and no secret is left", () => {
    holds(
      fc.property(redactable, ({ text, secrets }) => {
        const once = credentials(text);
        expect(credentials(once)).toBe(once);
        for (const secret of secrets) expect(once).not.toContain(secret);
      }),
      seed,
      2000,
    );
  });

  // Each is a megabyte. With work that is not linear (a quantifier without a bound, a run that is looked at from each
  // of its places) any of these takes minutes, and the test its time-out.
  const pieces = [
    ...["eyJ", "sk-", "sk-ant-", "token=", "token:a", "secret_access_key", "bearer ", "-", "-----BEGIN ", "://a:", "@"],
    ...["authorization:", "AKIA", "glpat-a ", "--token ", "xoxb-1", "hooks.slack.com/services/", 'password"', "1//0"],
    ...["ghs_", "ya29.", "SG.", "://a:b", "eyJ.", "password        ", "npm_a", "\\nsk-", "[redacted:x]sk-", "a", " "],
    ...["cookie: a=1", "auth=a", " -u a:", "login a password ", ":5432:a:b:", ":*:", ":AA", "&sig=a", "pat", "SK0"],
    ...[
      "<password>",
      'password("',
      "identified by '",
      "12345678:AA",
      ".atlasv1.",
      "secret_",
      "MTa",
      "Private-Lines: 1",
    ],
    ...[
      "echo a:",
      "-u a -p ",
      "sig=",
      '_key", "',
      '"d":"a',
      "auth plain a",
      "redis-cli -h a",
      "$6$a",
      "/user:a ",
      "_pat=",
    ],
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----a -",
    `-----BEGIN PRIVATE KEY-----${"a ".repeat(9000)}`,
    `eyJ${"a".repeat(2000)}.${"a".repeat(8000)}.-`,
  ].map((piece) => ({ piece, name: piece.slice(0, 40) }));
  test.each(pieces)("a megabyte of $name", ({ piece }) => {
    const text = piece.repeat(Math.ceil(1_000_000 / piece.length));
    const once = credentials(text);
    expect(credentials(once) === once).toBe(true);
  });

  test("a megabyte without a break behind each prefix", () => {
    for (const prefix of ["sk-", "ghp_", "eyJ", "ya29.", "token=", "://", "://a:", "Bearer ", "AKIA"]) {
      const once = credentials(prefix + "a".repeat(1_000_000));
      expect(credentials(once)).toBe(once);
    }
  });
});

describe("redactorOf", () => {
  test("nothing to do without the option", () => {
    expect(redactorOf(undefined)).toBeNull();
    expect(redactorOf("credentials")).toBe(credentials);
  });

  test("an application's own function", () => {
    expect(redactorOf((text) => text.replaceAll("Ada", "A."))?.("Ada and Ada")).toBe("A. and A.");
  });

  test("fails closed: what throws, or answers no text, loses the text and not the secret", () => {
    const broken: ((text: string) => string)[] = [
      () => {
        throw new Error("no");
      },
      () => undefined as never,
      (async () => "later") as never,
    ];
    for (const own of broken) expect(redactorOf(own)?.("secret")).toBe(REDACTOR_FAILED);
  });
});

test("a redactor that is none is refused when the store is opened: it would erase everything that is said", async () => {
  for (const redact of [true, false, null, "all"])
    await expect(openStore("memory:", { redact: redact as never })).rejects.toMatchObject({ code: "RECORD_INVALID" });
});
