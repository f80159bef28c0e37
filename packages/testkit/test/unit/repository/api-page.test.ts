import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Declarations, moduleDoc } from "../../../../../scripts/api/declarations.ts";
import { entryPoints } from "../../../../../scripts/api/page.ts";
import { document, makePage } from "../../../../../scripts/api.ts";

/** How many names each public entry may have. An entry that is not here may not exist. */
const NAMES_MAX: Readonly<Record<string, number>> = {
  holdfast: 118,
  "holdfast/store": 36,
  "holdfast/address": 5,
  "holdfast/disk": 7,
  "@holdfast/adapters/ai-sdk": 13,
  "@holdfast/adapters/claude-agent": 5,
  "@holdfast/adapters/dialects": 1,
  "@holdfast/adapters/openai-agents": 10,
  "@holdfast/adapters/langchain": 5,
  "@holdfast/adapters/langgraph": 3,
  "@holdfast/postgres": 13,
  "@holdfast/cloudflare": 3,
  "@holdfast/server": 14,
  "@holdfast/server/contract": 22,
  "@holdfast/server/client": 7,
  "@holdfast/acp": 13,
  "@holdfast/testkit": 22,
  "@holdfast/testkit/conversations": 3,
  "@holdfast/testkit/kill": 6,
  "@holdfast/testkit/simulation": 9,
};

describe("docs/API.md", () => {
  const page = readFileSync(document, "utf8");

  test("is what the source says (else: npm run api)", () => {
    const [found, wanted] = [page.split("\n"), makePage().split("\n")];
    const at = wanted.findIndex((line, index) => line !== found[index]);
    const where = at < 0 ? found.length - wanted.length : { line: at + 1, page: found[at], source: wanted[at] };
    expect(where, "docs/API.md differs from the source: run `npm run api` and look at the diff").toBe(0);
  });

  test("shows every value that an entry point exports at run time", async () => {
    for (const { name, file } of entryPoints()) {
      const section = page.split(/^## /m).find((text) => text.startsWith(`${name}\n`)) ?? "";
      const headings = [...section.matchAll(/^### (\S+)$/gm)].map(([, heading]) => heading);
      expect(headings, name).toEqual(expect.arrayContaining(Object.keys(await import(file))));
    }
  });

  test("names no more than each entry may have, and no internal entry", () => {
    const declarations = new Declarations();
    const counts = new Map(entryPoints().map(({ name, file }) => [name, declarations.exportsOf(file).size]));
    // A name counts once for each entry that has it, types included. A new name must be worth a higher limit.
    expect(Object.fromEntries(counts)).toEqual(
      Object.fromEntries(Object.entries(NAMES_MAX).map(([name, most]) => [name, expect.toSatisfy((n) => n <= most)])),
    );
    const ofTestkit = [...counts].filter(([name]) => name.startsWith("@holdfast/testkit"));
    expect(ofTestkit.reduce((sum, [, count]) => sum + count, 0)).toBeLessThanOrEqual(40);
    expect(page).not.toMatch(/holdfast(?:\/\w+)?\/internal/);
  });

  test("has a heading for every link within it", () => {
    const slugs = new Set<string>();
    for (const [, heading = ""] of page.matchAll(/^#+ (.*)$/gm)) {
      const slug = heading
        .toLowerCase()
        .replaceAll(/[^\w -]/g, "")
        .replaceAll(" ", "-");
      for (let count = 0; ; count++) {
        const one = count === 0 ? slug : `${slug}-${count}`;
        if (slugs.has(one)) continue;
        slugs.add(one);
        break;
      }
    }
    const links = [...page.matchAll(/\]\(#([^)]*)\)/g)].map(([, link]) => link!);
    expect(links.length).toBeGreaterThan(200);
    expect(links.filter((link) => !slugs.has(link))).toEqual([]);
  });
});

describe("declarations are read from the source", () => {
  const place = mkdtempSync(join(tmpdir(), "holdfast-api-"));
  afterAll(() => rmSync(place, { recursive: true }));
  const write = (name: string, text: string): string => {
    mkdirSync(join(place, name, ".."), { recursive: true });
    writeFileSync(join(place, name), text);
    return join(place, name);
  };
  write(
    "inner.ts",
    `/** About the module. */

export interface First { readonly a: Hidden }
interface Hidden { b: string }
/** Takes one. */
export function take(value: string): string;
export function take(value: number): number;
export function take(value: never): unknown { return value; }
export class Holder {
  #secret = 1;
  /** Its size. */
  get size(): number { return this.#secret; }
}
`,
  );
  write("all.ts", "export const ONE = 1;\n");
  const entry = write(
    "index.ts",
    `import type * as inner from "./inner.ts";
import type { Buffer } from "node:buffer";
export { take as taken, type First, Holder } from "./inner.ts";
export * from "./all.ts";
export type { Buffer };
export type Pair = [inner.First, inner.First];
`,
  );

  test("through re-exports, renames, overloads and namespaces", () => {
    const found = new Declarations().exportsOf(entry);
    expect([...found.keys()].sort()).toEqual(["Buffer", "First", "Holder", "ONE", "Pair", "taken"]);
    expect(found.get("Buffer")).toEqual({ name: "Buffer", from: "node:buffer" });
    expect(found.get("taken")).toMatchObject({ name: "taken", declaredAs: "take", doc: "Takes one." });
    expect(found.get("taken")).toMatchObject({
      code: expect.stringMatching(/string\): string;\n.*number\): number;$/),
    });
    expect(found.get("Holder")).toMatchObject({ kind: "class", code: expect.not.stringContaining("#") });
    expect(found.get("Holder")).toMatchObject({ code: expect.stringContaining("/** Its size. */") });
    expect(found.get("ONE")).toMatchObject({ kind: "constant", code: "export declare const ONE = 1;" });
    expect(found.get("Pair")).toMatchObject({ kind: "type", code: "type Pair = [First, First];" });
  });

  test("with the types they refer to, also those that are not exported", () => {
    const declarations = new Declarations();
    const first = declarations.exportsOf(entry).get("First");
    expect(first).toMatchObject({ doc: "", refers: [{ file: join(place, "inner.ts"), name: "Hidden" }] });
    expect(declarations.find(join(place, "inner.ts"), "Hidden")?.code).toBe("interface Hidden { b: string }");
    expect(declarations.find(entry, "Promise")).toBeNull();
    expect(moduleDoc(join(place, "inner.ts"))).toBe("About the module.");
  });

  test("a constant whose type only the compiler knows is refused", () => {
    const file = write("inferred.ts", "export const x = Buffer.from([1]);\n");
    expect(() => new Declarations().exportsOf(file)).toThrow("x has a type that is inferred: write it down");
  });
});
