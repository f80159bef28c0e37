import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Plan } from "../../../src/index.ts";

/** A folder with a file for each type of change. */
export function fillFolder(folder: string): void {
  mkdirSync(join(folder, "agent", "parts"), { recursive: true });
  const files = { edited: "one two three", replaced: "old", sealed: "sealed", moved: "moved", "parts/a": "part" };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, "agent", name), text);
  chmodSync(join(folder, "agent", "edited"), 0o640);
  chmodSync(join(folder, "agent", "sealed"), 0o200);
  writeFileSync(join(folder, "built"), "new");
}

/** One change of each type. */
export function planIn(folder: string): Plan {
  const at = (name: string): string => join(folder, "agent", name);
  const words = { grade: "rebuilt", why: "because" } as const;
  return {
    changes: [
      { type: "move", path: at("moved"), to: at("other/project/moved"), why: "because" },
      { type: "move", path: at("parts"), to: at("other/project/parts"), why: "because" },
      { type: "create", path: at("made/here/file"), bytes: Buffer.from("made"), mode: 0o600, ...words },
      {
        type: "edit",
        path: at("edited"),
        size: 13,
        edits: [{ offset: 4, length: 3, bytes: Buffer.from("TWO"), ...words }],
      },
      { type: "replace", path: at("replaced"), size: 3, from: join(folder, "built"), ...words },
      { type: "mode", path: at("sealed"), mode: 0o600, why: "because" },
    ],
    lost: [],
  };
}

/** Everything in the agent's folder: text and permissions of each file, and the folders. */
export function stateOf(folder: string): Record<string, string> {
  const root = join(folder, "agent");
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted();
  return Object.fromEntries(
    names.map((name) => {
      const stat = lstatSync(join(root, name));
      const mode = (stat.mode & 0o777).toString(8);
      // What cannot be read keeps its text.
      const text = stat.isDirectory() ? "folder" : stat.mode & 0o400 ? readFileSync(join(root, name), "utf8") : "?";
      return [name, stat.isDirectory() ? text : `${text} ${mode}`];
    }),
  );
}
