import { closeSync, openSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Plan } from "../../contract/plan.ts";
import { type Fields, fieldsOf } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import type { SourceFile } from "../../files/source-file.ts";
import { fillGaps } from "./gaps.ts";
import { makeHeader } from "./header.ts";
import { type Line, readLog } from "./log.ts";

/** The version whose checks were seen: of others, only what needs no knowledge of them is repaired. */
const VERSION = 0;
const BATCH_BYTES = 2 ** 20;
/** Numbers that are further apart were not counted: the digits are damaged. */
const GAP_MAX = 100_000;

/**
 * Writes the log again, so that each of DeepSeek Harness's checks passes: a header, and every number once, in order.
 * What is lost comes back from what repeats it; a number of which nothing is known gets an event that may be ignored.
 */
export async function plan(session: SessionPlace, door: Door): Promise<Plan | null> {
  const file = await door.open(session.path);
  if (file.size === 0) return null;
  const log = readLog(file);
  const { version = VERSION } = log.header ?? {};
  if (version !== VERSION && !(Number.isInteger(version) && log.isUnharmed)) return null;
  const folder = basename(dirname(session.path));
  const project = basename(dirname(dirname(session.path)));
  const header = log.header ?? makeHeader(log.lines, file, folder, project);
  const lost = [...log.lost];
  const valueAt = (line: Line): Fields => fieldsOf(JSON.parse(textOf(line, file)));
  const lines =
    version === VERSION ? fillGaps(numbered(log.lines, file), log, { session: session.id, valueAt, lost }) : log.lines;
  const from = join(door.temporary(), `${door.nextNumber()}.jsonl`);
  const isSame = write(from, header, lines, file);
  if (isSame && !file.isCut) return null;
  const made = lines.filter(({ isMade }) => isMade === true).length;
  const changed = lines.filter(({ place }) => place === null).length - made;
  const size = door.facts(session.path)!.size;
  const why = `writes the log again: ${changed} records repaired or brought back, ${made} made up`;
  const grade = made > 0 || log.header === null ? "rebuilt" : "brought back";
  return { changes: [{ type: "replace", path: session.path, size, from, grade, why }], lost };
}

/** In the order of their numbers, each number once. */
function numbered(lines: readonly Line[], file: SourceFile): Line[] {
  const sorted = lines.toSorted((a, b) => a.seq - b.seq);
  const kept: Line[] = [];
  let next = 0;
  for (const line of sorted) {
    const last = kept.at(-1);
    if (last && line.seq < next) {
      // Of one that is cut off, the whole one is there too.
      if (line.isCut === true) continue;
      if (last.isCut === true && last.seq === line.seq) {
        kept[kept.length - 1] = line;
        next = line.seq + line.count;
        continue;
      }
      if (textOf(line, file) === textOf(last, file) || isWithin(line, kept, file)) continue;
      return renumbered(lines, file);
    }
    if (line.seq - next > GAP_MAX) return renumbered(lines, file);
    kept.push(line);
    next = line.seq + line.count;
  }
  return kept;
}

function isWithin(line: Line, kept: readonly Line[], file: SourceFile): boolean {
  return kept.slice(-8).some((other) => other.seq === line.seq && textOf(other, file) === textOf(line, file));
}

/** Two processes wrote at once, or a number is damaged: in the order of the file, with numbers of their own. */
function renumbered(lines: readonly Line[], file: SourceFile): Line[] {
  const seen = new Set<string>();
  const numbers = new Map<number, number>();
  const out: Line[] = [];
  let next = 0;
  for (const line of lines) {
    const text = textOf(line, file);
    if (seen.has(text)) continue;
    seen.add(text);
    for (let n = 0; n < line.count; n++) numbers.set(line.seq + n, next + n);
    const value = fieldsOf(JSON.parse(text));
    const sources = value["sourceEventSeqs"];
    const { start, end, op } = fieldsOf(value["surfaceOp"]);
    const own = value["seq0"] === undefined ? { seq: next } : { seq0: next };
    const to = (from: unknown): number => numbers.get(Number(from)) ?? Number(from);
    const renamed: Fields = {
      ...value,
      ...own,
      ...(Array.isArray(sources) && { sourceEventSeqs: [...new Set(sources.map(to))].filter((seq) => seq < next) }),
      ...(op !== undefined && { surfaceOp: { op, start: to(start), end: to(end) } }),
    };
    const isSame = line.seq === next && JSON.stringify(renamed) === text;
    out.push(isSame ? line : { ...line, seq: next, place: null, value: renamed });
    next += line.count;
  }
  return out;
}

function textOf({ place, value }: Line, file: SourceFile): string {
  return place === null ? JSON.stringify(value) : Buffer.from(file.read(place.offset, place.length)).toString("utf8");
}

/** Returns whether it says what the file says already. */
function write(target: string, header: Fields, lines: readonly Line[], file: SourceFile): boolean {
  const out = openSync(target, "wx", 0o600);
  let at = 0;
  let isSame = true;
  const put = (text: string): void => {
    const bytes = Buffer.from(text);
    if (isSame) isSame = Buffer.compare(file.read(at, bytes.length), bytes) === 0;
    at += bytes.length;
    const packed = file.isExpanded ? zstdCompressSync(bytes, CHECKED) : bytes;
    for (let done = 0; done < packed.length; ) done += writeSync(out, packed, done);
  };
  try {
    // The header has a frame of its own.
    put(`${JSON.stringify(header)}\n`);
    let batch = "";
    for (const line of lines) {
      batch += `${textOf(line, file)}\n`;
      if (batch.length < BATCH_BYTES) continue;
      put(batch);
      batch = "";
    }
    if (batch !== "") put(batch);
  } finally {
    closeSync(out);
  }
  return isSame && at === file.size;
}

/** With a checksum (`ZSTD_c_checksumFlag`), as DeepSeek Harness writes its frames. */
const CHECKED = { params: { 201: 1 } };
