import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { document, withTables } from "../../../../../scripts/cli-reference.ts";

test("the tables of docs/CLI.md are those of the code (else: node --conditions=holdfast-source scripts/cli-reference.ts)", () => {
  const text = readFileSync(document, "utf8");
  expect(text).toBe(withTables(text));
});

test("every code that a command may end with is in docs/CLI.md or docs/ERRORS.md", () => {
  const source = join(import.meta.dirname, "../../../src");
  const codes = globSync("**/*.ts", { cwd: source }).flatMap((path) =>
    Array.from(
      readFileSync(join(source, path), "utf8").matchAll(/new CommandError\(\s*EXIT\.\w+,\s*"([A-Z_]+)"/g),
      ([, code]) => code!,
    ),
  );
  expect(codes.length).toBeGreaterThan(20);
  const said = `${readFileSync(document, "utf8")}\n${readFileSync(join(document, "../ERRORS.md"), "utf8").replace(/^## (\w+)$/gm, "`$1`")}`;
  // Those are told in the chat, which goes on: without a code.
  const inChat = ["ALREADY_ANSWERED", "NOTHING_TO_COMPACT", "STOPPED"];
  expect([...new Set(codes)].filter((code) => !inChat.includes(code) && !said.includes(`\`${code}\``))).toEqual([]);
});
