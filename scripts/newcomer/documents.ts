import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The documents that a newcomer follows. */
export const DOCUMENTS = ["README.md", "docs/CLI.md"] as const;
export type Document = (typeof DOCUMENTS)[number];

/** Every command that a document tells its reader to type: the lines of its `sh` blocks, without their comments. */
export function commandsIn(document: Document): string[] {
  const blocks = textOf(document).matchAll(/^```sh\n([\s\S]*?)^```$/gm);
  return [...blocks].flatMap(([, block]) =>
    block!
      .split("\n")
      .map((line) => line.replace(/\s+#.*$/, "").trim())
      .filter((line) => line !== ""),
  );
}

/** The names in the table of commands: `chat`, `run`, … */
export function subcommandsIn(document: Document): string[] {
  const table = /<!-- commands: [\s\S]*?<!-- end of commands -->/.exec(textOf(document))?.[0] ?? "";
  return [...table.matchAll(/^\| `([a-z]+)/gm)].map(([, name]) => name!);
}

function textOf(document: Document): string {
  return readFileSync(join(root, document), "utf8");
}
