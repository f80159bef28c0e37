import { readFileSync, statSync, writeFileSync } from "node:fs";
import { filesBelow } from "./files.ts";

/** Rewrites the lines of every JSONL file below: only those that the function changes get other bytes. */
export function shortenLines(folder: string, shorten: (line: string) => string): void {
  for (const path of filesBelow(folder)) {
    if (!path.endsWith(".jsonl") || !statSync(path).isFile()) continue;
    const lines = readFileSync(path, "utf8").split("\n");
    // An existing file keeps its mode.
    writeFileSync(path, lines.map((line) => (line === "" ? line : shorten(line))).join("\n"));
  }
}
