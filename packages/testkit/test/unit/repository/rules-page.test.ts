import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../../../../..");
const FOLDERS = ["packages", "docs", "scripts", "bench", "examples"];
const MADE = new Set(["node_modules", "dist", "bundle"]);

const NUMBER = String.raw`[PRSC]\d{1,2}b?`;
const WITH_LETTERS = `${NUMBER}(?: [a-z](?:, [a-z])*\\b)?`;
const LIST = `${WITH_LETTERS}(?:, ${WITH_LETTERS})*`;
/** In parentheses; before the words of a comment or of a test's title; in the list of a conformance case. */
const CITED = new RegExp(
  String.raw`\(${LIST}[),:]|(?:["'\`]| \* |// )${LIST}[:.]|\["${NUMBER}"(?:, "${NUMBER}")*\]`,
  "g",
);
/** Wider: also what only looks like a rule, such as a part of a password in a test. */
const SEEN = /(?<!\w)[RSC]\d{1,3}[a-z]?(?!\w)/g;

const page = readFileSync(join(ROOT, "docs/RULES.md"), "utf8");
const guarantees = readFileSync(join(ROOT, "docs/GUARANTEES.md"), "utf8");
const rules = [...page.matchAll(/^- \*\*([RSC]\d+b?)\*\* /gm)].map(([, number]) => number!);
const promises = [...guarantees.matchAll(/^### (P\d+) /gm)].map(([, number]) => number!);

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((found) => {
    const path = join(folder, found.name);
    if (found.isDirectory()) return MADE.has(found.name) ? [] : filesIn(path);
    return found.isFile() && /\.(tsx?|md)$/.test(found.name) && path !== join(ROOT, "docs/RULES.md") ? [path] : [];
  });
}

const texts = FOLDERS.flatMap((folder) => filesIn(join(ROOT, folder))).map((file) => readFileSync(file, "utf8"));
const citations = texts.flatMap((text) => [...text.matchAll(CITED)].map(([citation]) => citation));

test("docs/RULES.md defines each rule once, and every rule that is cited", () => {
  expect(rules).toEqual([...new Set(rules)]);
  const seen = new Set(texts.flatMap((text) => [...text.matchAll(SEEN)].map(([number]) => number)));
  expect([...seen].filter((number) => !rules.includes(number))).toEqual([]);
});

test("every rule of docs/RULES.md and docs/GUARANTEES.md is cited, and no other", () => {
  const cited = new Set(citations.flatMap((citation) => citation.match(new RegExp(NUMBER, "g")) ?? []));
  expect([...cited].sort()).toEqual([...rules, ...promises].sort());
});

test("a letter that is cited with a rule is one of that rule's", () => {
  for (const citation of citations) {
    for (const [, number = "", letters = ""] of citation.matchAll(/([PRSC]\d+b?) ([a-z](?:, [a-z])*)\b/g)) {
      const [definition = ""] = page.split(`- **${number}** `)[1]?.split("\n- **") ?? [];
      for (const letter of letters.split(", ")) expect(definition, `${number} ${letter}`).toContain(`- (${letter}) `);
    }
  }
});
