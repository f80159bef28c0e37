import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JournalRecord } from "holdfast";

/** What was taken away. */
export interface Taken {
  readonly seq: number;
  readonly kind: string;
  readonly name: string;
}

/**
 * What a bad store does: takes one record that was acknowledged out of the newest file of a session, for `--lose-one`. The result of a tool, since that stands by itself. Null if there is none yet.
 * Only for a session that nobody has open.
 */
export function loseOne(store: string, session: string, below: (below: number) => number): Taken | null {
  const folder = join(store, "sessions", session);
  const segments = readdirSync(folder).filter((name) => /^\d+\.jsonl$/.test(name));
  const path = join(folder, segments.sort().at(-1)!);
  const lines = readFileSync(path, "utf8").split("\n");
  const results = lines.flatMap((line, index) => (line.includes('"kind":"tool.ended"') ? [index] : []));
  if (results.length === 0) return null;
  const index = results[below(results.length)]!;
  const { seq, kind, ...record } = JSON.parse(lines[index]!) as JournalRecord;
  lines.splice(index, 1);
  writeFileSync(path, lines.join("\n"));
  return { seq, kind, name: String(record["name"]) };
}
