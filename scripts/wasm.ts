import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import wabt from "wabt";

/** Assembles escape.wat into the module that the library loads. A test keeps the two equal. */

const folder = join(import.meta.dirname, "../packages/holdfast/src/journal/lines");

/** The bytes of the assembled file, in base64. */
export async function assembleEscape(): Promise<string> {
  const { parseWat } = await wabt();
  using module = disposable(parseWat("escape.wat", readFileSync(join(folder, "escape.wat"), "utf8"), { simd: true }));
  module.validate();
  return Buffer.from(module.toBinary({}).buffer).toString("base64");
}

function disposable<T extends { destroy(): void }>(of: T): T & Disposable {
  return Object.assign(of, { [Symbol.dispose]: () => of.destroy() });
}

if (import.meta.main) {
  const text = `/** escape.wat, assembled by \`npm run wasm\`. */\nexport const ESCAPE_MODULE =\n  "${await assembleEscape()}";\n`;
  writeFileSync(join(folder, "escape-module.ts"), text);
}
