import { createHash } from "node:crypto";
import { closeSync, constants, fdatasyncSync, ftruncateSync, openSync, writeSync } from "node:fs";
import type { ReadItem } from "../contract/agent.ts";
import { fieldsOf } from "../contract/shapes.ts";
import { type Door, Refused } from "../files/door.ts";

/**
 * The rows of a session in a database that it shares with others, as lines of JSON. A row that was changed is added
 * again: of several with the same table and id, the last one counts. What the agent removed stays.
 */

const LINE_FEED = 10;

/** Returns how many rows were added. */
export function keepRows(items: Iterable<ReadItem>, target: string, door: Door): number {
  const known = new Map<string, string>();
  const end = readKept(target, known, door);
  const kept = openSync(target, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600);
  let added = 0;
  try {
    // A line that a kill cut off is written again.
    ftruncateSync(kept, end);
    let offset = end;
    for (const item of items) {
      if (item.type !== "record" || item.record.bytes.length === 0) continue;
      const { bytes } = item.record;
      const hash = hashOf(bytes);
      const key = keyOf(bytes) ?? hash;
      if (known.get(key) === hash) continue;
      known.set(key, hash);
      const line = Buffer.concat([bytes, Buffer.of(LINE_FEED)]);
      for (let written = 0; written < line.length; )
        written += writeSync(kept, line, written, line.length - written, offset + written);
      offset += line.length;
      added++;
    }
    if (added > 0) fdatasyncSync(kept);
  } finally {
    closeSync(kept);
  }
  return added;
}

/** Notes the rows that are there. Returns where the last whole line ends. */
function readKept(target: string, known: Map<string, string>, run: Door): number {
  if (run.facts(target) === null) return 0;
  using door = run.inner();
  let rest: Uint8Array = new Uint8Array(0);
  let end = 0;
  try {
    for (const chunk of door.openRaw(target).chunks()) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let to = bytes.indexOf(LINE_FEED); to >= 0; to = bytes.indexOf(LINE_FEED, from)) {
        const line = bytes.subarray(from, to);
        const hash = hashOf(line);
        known.set(keyOf(line) ?? hash, hash);
        end += line.length + 1;
        from = to + 1;
      }
      rest = bytes.subarray(from);
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new Error(`${target}: ${error.message}. Nothing was kept there.`, { cause: error });
  }
  return end;
}

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("base64");

/** The row's table and id; null if it does not say both. */
function keyOf(bytes: Uint8Array): string | null {
  try {
    const { table, id } = fieldsOf(JSON.parse(Buffer.from(bytes).toString("utf8")));
    return table === undefined || id === undefined ? null : JSON.stringify([table, id]);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
