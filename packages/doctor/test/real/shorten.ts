import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Rewrites the long records of every JSONL file below. Other lines keep their bytes. */
export function shortenLines(folder: string, shorten: (record: Record<string, unknown>) => unknown): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (!name.endsWith(".jsonl") || !statSync(path).isFile()) continue;
    const lines = readFileSync(path, "utf8")
      .split("\n")
      .map((line) => (line.length > 4_000 ? JSON.stringify(shorten(JSON.parse(line))) : line));
    // An existing file keeps its mode.
    writeFileSync(path, lines.join("\n"));
  }
}

/** Without the descriptions of tools, at any depth. */
export function withoutTools(record: unknown): unknown {
  return JSON.parse(JSON.stringify(record, (key, value) => (key === "tools" && Array.isArray(value) ? [] : value)));
}
