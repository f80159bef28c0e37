import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JournalRecord } from "holdfast";

/** The record that was removed. */
export interface RemovedRecord {
  readonly seq: number;
  readonly kind: string;
  /** The tool that produced the result. */
  readonly name: string;
}

/**
 * Acts as a faulty store for `--lose-one`: removes one acknowledged record from a session's files. Picks the result of
 * a tool that is not safe to repeat, so that it cannot be produced again. Null if there is none yet. The session must
 * not be open.
 */
export function removeRecord(store: string, session: string, below: (below: number) => number): RemovedRecord | null {
  const folder = join(store, "sessions", session);
  const segments = readdirSync(folder).filter((name) => /^\d+\.jsonl$/.test(name));
  const texts = new Map(segments.sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  const all = [...texts.values()].join("");
  const found: { readonly name: string; readonly line: string; readonly record: JournalRecord }[] = [];
  for (const [name, text] of texts) {
    for (const line of text.split("\n").filter((one) => one.includes('"kind":"tool.ended"'))) {
      const record = JSON.parse(line) as JournalRecord;
      // If an epoch has retained it, it would still be there.
      const isOnlyCopy = all.split(String(record["id"])).length === 2;
      if (isOnlyCopy && !isSafe(all, String(record["call"]))) found.push({ name, line, record });
    }
  }
  if (found.length === 0) return null;
  const { name, line, record } = found[below(found.length)]!;
  writeFileSync(
    join(folder, name),
    texts.get(name)!.replace(`${line}\n`, () => ""),
  );
  return { seq: record.seq, kind: record.kind, name: String(record["name"]) };
}

function isSafe(all: string, call: string): boolean {
  const started = all.split("\n").find((line) => line.includes('"kind":"tool.started"') && line.includes(call));
  return started?.includes('"replay":"safe"') ?? false;
}
