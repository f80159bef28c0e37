import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../../..");

export function guideFile(name: string): string {
  return join(ROOT, "docs/guides", `${name}.md`);
}

/** The blocks of code in a guide; `file`: its name, if it says one at its beginning. */
export function blocks(name = "ai-sdk"): { readonly file: string | null; readonly code: string }[] {
  const guide = readFileSync(guideFile(name), "utf8");
  return [...guide.matchAll(/```tsx?\n([\s\S]*?)```/g)].map(([, code]) => ({
    file: code!.match(/^\/\/ ([\w-]+\.tsx?):/)?.[1] ?? null,
    code: code!,
  }));
}

const PACKAGES = [
  ...["holdfast", "@holdfast", "ai", "@ai-sdk", "@openai", "@langchain", "langchain", "zod", "@types"],
  ...["hono", "@hono", "express", "react", "react-dom"],
];

/** A folder in which they can be run as a reader would run them. */
export function runnable(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, code] of Object.entries(files)) writeFileSync(join(folder, name), code);
  mkdirSync(join(folder, "node_modules"));
  for (const name of PACKAGES) symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
}

/** The same, and the command that checks their types. */
export function compilable(folder: string, files: Readonly<Record<string, string>>): string[] {
  runnable(folder, files);
  const compilerOptions = { noUnusedLocals: false, typeRoots: [join(ROOT, "node_modules/@types")] };
  const config = { extends: join(ROOT, "tsconfig.test.json"), compilerOptions, include: [folder] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  return [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", folder];
}
