import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";

const ROOT = resolve(import.meta.dirname, "../../../..");

/** What the blocks take for granted: the reader's model and tools, and from the second block on what the first one made. */
const READERS = `
import type { LanguageModel, ToolSet } from "ai";
declare const model: LanguageModel;
declare const tools: ToolSet;
`;
const MADE = `
import { generateText, ToolLoopAgent, type ModelMessage } from "ai";
import type { Durable } from "@holdfast/adapters/ai-sdk";
import type { Session } from "holdfast";
declare const session: Session<ModelMessage>;
declare const agent: Durable;
`;

test("the blocks of the guide compile", () => {
  using here = place();
  const guide = readFileSync(join(ROOT, "docs/guides/ai-sdk.md"), "utf8");
  const blocks = [...guide.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);
  expect(blocks).toHaveLength(3);
  for (const [n, code] of blocks.entries()) {
    writeFileSync(join(here.path, `block-${n}.ts`), `${READERS}${n === 0 ? "" : MADE}${code}\nexport {};\n`);
  }
  mkdirSync(join(here.path, "node_modules"));
  for (const name of ["holdfast", "@holdfast", "ai", "@types"])
    symlinkSync(join(ROOT, "node_modules", name), join(here.path, "node_modules", name));
  const compilerOptions = { noUnusedLocals: false, typeRoots: [join(ROOT, "node_modules/@types")] };
  const config = { extends: join(ROOT, "tsconfig.test.json"), compilerOptions, include: [here.path] };
  writeFileSync(join(here.path, "tsconfig.json"), JSON.stringify(config));
  writeFileSync(join(here.path, "package.json"), '{ "type": "module" }');
  let said = "";
  try {
    execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", here.path], {
      cwd: ROOT,
      encoding: "utf8",
    });
  } catch (error) {
    said = String((error as { stdout?: string }).stdout ?? error);
  }
  expect(said.split("\n").filter((line) => line.includes("block-"))).toEqual([]);
  expect(said).toBe("");
});
