// A reader of Holdfast journals, written from docs/FORMAT.md alone: it imports nothing of Holdfast. "§" cites that page;
// "ASSUMED" marks the places where the page leaves a choice.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, zstdDecompressSync } from "node:zlib";

export interface Reading {
  records: { seq: number; kind: string; crc: string }[];
  epoch: number[];
  torn: { segment: string; offset: number } | null;
  damaged: { segment: string; offset: number; bytes: number; seq?: number; why: "corrupt" | "foreign" }[];
  missing: { from: number; to: number }[];
  next: number;
  closed: boolean;
  format: string | null;
}

type Damaged = Reading["damaged"][number];
type Rec = NonNullable<ReturnType<typeof whole>>;
/** `textEnd` is the end without the line end, `end` with it; `recs` are the whole records in it: one, if it is whole. */
type Line = { start: number; textEnd: number; end: number; recs: Rec[]; foreign: boolean };
type Segment = { name: string; number: number; lines: Line[] };

const MAX_LINE = 67_108_864;
const MAX_TRIES = 16;
const BEGIN = '{"seq":';
const CRC = ',"crc":"';
const TRAILER = /^,"crc":"([0-9a-f]{8})"\}$/;
const FRAME = Buffer.from("28b52ffd", "hex"); // the magic of a zstd frame
const TABLE = Buffer.from("5e2a4d18", "hex"); // 0x184D2A5E, little-endian
// ASSUMED: a byte-order mark is no JSON, so the decoder must not swallow it.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function json(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    return undefined;
  }
}

const integer = (value: unknown): number | null => (Number.isSafeInteger(value) ? (value as number) : null);
const begins = (text: Buffer): boolean => text.toString("latin1", 0, BEGIN.length) === BEGIN;

/** §2: the record that `text` (a line without its end, or a stretch of one) is, if it is whole. `at`: where it begins. */
function whole(text: Buffer, at: number) {
  const covered = text.subarray(0, Math.max(0, text.length - 18));
  const crc = TRAILER.exec(text.toString("latin1", covered.length))?.[1];
  if (!crc || !begins(covered) || text.length >= MAX_LINE || crc32(covered) !== Number.parseInt(crc, 16)) return null;
  const value = json(text) as Record<string, unknown> | undefined;
  const seq = integer(value?.["seq"]);
  const kind = value?.["kind"];
  if (!value || seq === null || seq < 1 || typeof kind !== "string" || typeof value["at"] !== "string") return null;
  // §6, ASSUMED: the header's members are in an object of the name `segment` (the page shows no header).
  const header = (kind === "segment" ? value["segment"] : null) as Record<string, unknown> | null | undefined;
  const format = typeof header?.["format"] === "string" ? header["format"] : null;
  return {
    ...{ seq, kind, crc, format, epoch: integer(header?.["epoch"]), start: at, end: at + text.length },
    ...{ synced: integer(value["synced"]) ?? 0, unit: integer(value["unit"]) ?? 1 },
    stray: false, // whole, but out of order (§4)
    before: 0, // the last number taken before it (§5)
  };
}

/** §2: the whole records inside a line that is not whole: from left to right, the shortest stretch first. */
function salvage(text: Buffer, at: number): Rec[] {
  const recs: Rec[] = [];
  let tries = 0;
  let begin = text.indexOf(BEGIN);
  while (begin !== -1 && tries < MAX_TRIES) {
    let found: Rec | null = null;
    for (let end = begin; !found && tries < MAX_TRIES; end++) {
      end = text.indexOf(CRC, end);
      if (end === -1) break;
      if (!TRAILER.test(text.toString("latin1", end, end + 18))) continue;
      tries++; // ASSUMED: every stretch of this form is a try, those that turn out whole too
      found = whole(text.subarray(begin, end + 18), at + begin);
    }
    if (found) recs.push(found);
    begin = text.indexOf(BEGIN, found ? found.end - at : begin + 1);
  }
  return recs;
}

/** §2: the lines of `bytes`, which stand at `base` in their segment. */
function split(bytes: Buffer, base: number): Line[] {
  const lines: Line[] = [];
  for (let start = 0, end = 0; start < bytes.length; start = end) {
    const newline = bytes.indexOf(0x0a, start);
    end = newline === -1 ? bytes.length : newline + 1;
    // One `\r` before the `\n` belongs to the line end. ASSUMED: at the end of an unended line it does not.
    let textEnd = newline === -1 ? end : newline;
    if (newline > start && bytes[newline - 1] === 0x0d) textEnd--;
    const text = bytes.subarray(start, textEnd);
    const record = whole(text, base + start);
    const recs = record ? [record] : salvage(text, base + start);
    const foreign = !begins(text) && json(text) !== undefined;
    lines.push({ start: base + start, textEnd: base + textEnd, end: base + end, recs, foreign });
  }
  return lines;
}

/** §7: the packed and the plain size of each frame: by the table, or, if that does not fit the file, by the magics. */
function framesOf(file: Buffer): [packed: number, plain: number][] {
  const count = file.length < 16 ? 0 : file.readUInt32LE(file.length - 8);
  const table = file.length - count * 8 - 16; // magic, size, the pairs, the count, "hfst"
  if (table >= 0 && file.indexOf(TABLE, table) === table && file.toString("latin1", file.length - 4) === "hfst") {
    const word = (i: number) => file.readUInt32LE(table + 8 + i * 4);
    const frames = Array.from({ length: count }, (_, i): [number, number] => [word(i * 2), word(i * 2 + 1)]);
    if (frames.reduce((sum, [packed]) => sum + packed, 0) === table) return frames;
  }
  // ASSUMED. The plain size of a frame that fails is unknown then; its packed size stands in for it.
  const frames: [number, number][] = [];
  const end = file.includes(TABLE) ? file.lastIndexOf(TABLE) : file.length;
  for (let at = 0, next = 0; at < end; at = next) {
    next = file.indexOf(FRAME, at + 1);
    if (next === -1 || next > end) next = end;
    frames.push([next - at, next - at]);
  }
  return frames;
}

/** §7: the lines of a packed segment. ASSUMED: offsets count plain bytes; a frame that fails is one stray line. */
function unpack(file: Buffer): Line[] {
  let lines: Line[] = [];
  let run: Buffer[] = []; // frames that follow each other are joined
  let base = 0;
  let at = 0;
  const flush = () => {
    const bytes = Buffer.concat(run);
    lines = lines.concat(split(bytes, base));
    base += bytes.length;
    run = [];
  };
  for (const [packed, plain] of framesOf(file)) {
    try {
      run.push(zstdDecompressSync(file.subarray(at, at + packed))); // checks the frame's checksum, too
    } catch {
      flush();
      lines.push({ start: base, textEnd: base + plain, end: base + plain, recs: [], foreign: false });
      base += plain;
    }
    at += packed;
  }
  flush();
  return lines;
}

/** §1: the segments, in the order of their numbers. */
function segmentsOf(folder: string): Segment[] {
  const names = new Map<number, string>();
  for (const name of readdirSync(folder).sort()) {
    const digits = /^(\d{6,})\.jsonl(\.zst)?$/.exec(name)?.[1];
    const number = Number(digits);
    // ASSUMED: no more leading zeros than six digits need, so that a number has but one name.
    if (digits === undefined || number < 1 || String(number).padStart(6, "0") !== digits) continue;
    if (!names.has(number)) names.set(number, name); // §7: the plain one counts; it sorts first
  }
  if (names.size === 0) throw new Error(`${folder} is no session: it has no segment`);
  const sorted = [...names].sort(([a], [b]) => a - b).map(([number, name]) => ({ number, name }));
  const lines = (name: string, bytes: Buffer) => (name.endsWith(".zst") ? unpack(bytes) : split(bytes, 0));
  return sorted.map((one) => ({ ...one, lines: lines(one.name, readFileSync(join(folder, one.name))) }));
}

/** §4: marks the whole records that are strays because of their seq, over all segments. */
function order(segments: Segment[]): void {
  // What counts so far, each with the number of strays before it. Before segment 1 there is a "record 0".
  const kept: { seq: number; strays: number; rec?: Rec }[] = segments[0]?.number === 1 ? [{ seq: 0, strays: 0 }] : [];
  let strays = 0;
  for (const line of segments.flatMap((segment) => segment.lines)) {
    for (const rec of line.recs) {
      const at = kept.findLastIndex((one) => one.seq < rec.seq) + 1;
      const before = kept[at - 1]; // the record that this one comes after,
      const jumped = kept[at]; // and the first one in between, if there is one: then this one goes back
      if (jumped && before) {
        // ASSUMED: to jump is to leave a gap that the strays before the jump do not explain; to fit is to leave none. If more
        // than one was pasted in, each of them jumps (once the first is gone), so all from there on are strays.
        const room = jumped.strays - before.strays + 1;
        if (jumped.seq - before.seq > room && rec.seq - before.seq <= room) {
          strays += kept.length - at;
          for (const { rec: pasted } of kept.splice(at)) if (pasted) pasted.stray = true;
        }
      }
      rec.stray = at < kept.length;
      if (rec.stray) strays++;
      else kept.push({ seq: rec.seq, strays, rec });
    }
    if (line.recs.at(-1)?.end !== line.textEnd) strays++;
  }
}

/** §5: the records of a line that count, and the strays around them, in order. ASSUMED: strays side by side are one. */
function partsOf(line: Line): (Rec | { start: number; end: number; takes: boolean })[] {
  const parts: ReturnType<typeof partsOf> = [];
  let at = line.start;
  for (const rec of line.recs.filter((one) => !one.stray)) {
    if (rec.start > at) parts.push({ start: at, end: rec.start, takes: false });
    parts.push(rec);
    at = rec.end;
  }
  if (parts.length === 0 || at < line.textEnd) parts.push({ start: at, end: line.end, takes: true });
  return parts;
}

/** §6: the number of the segment that begins the current epoch. */
function epochStart(segments: Segment[], firsts: Map<Segment, Rec>): number {
  for (const segment of segments.toReversed()) {
    const first = firsts.get(segment);
    if (first?.kind === "segment" && first.epoch !== null) return first.epoch;
    if (first?.kind === "epoch") return segment.number;
  }
  return 0; // ASSUMED: if nothing tells, the epoch is all there is
}

export function readSession(folder: string): Reading {
  const segments = segmentsOf(folder);
  const newest = segments.at(-1)!;
  const wholes = (segment: Segment) => segment.lines.flatMap((line) => line.recs);
  let format: string | null = null; // ASSUMED: that of the newest header that can be read
  for (const segment of segments) {
    format = wholes(segment)[0]?.format ?? format;
    if (Number.parseInt(format ?? "", 10) > 1) throw new Error(`${segment.name} has the newer format ${format}`);
  }
  order(segments);

  let counted: { segment: Segment; rec: Rec }[] = [];
  let damaged: Damaged[] = [];
  let missing: Reading["missing"] = [];
  let torn: Reading["torn"] = null;
  // D. ASSUMED: "any whole record" means those behind the tear and those out of order, too.
  const durable = wholes(newest).reduce((most, rec) => Math.max(most, rec.synced), 0);

  // The last number taken. Before the first whole record of the first segment they are counted backwards; without one, from 1.
  const opening = segments[0]!.lines.map((line) => line.recs.find((rec) => !rec.stray));
  const ahead = opening.findIndex((rec) => rec !== undefined); // so many lines, and so many strays, before it
  let last = ahead === -1 ? 0 : opening[ahead]!.seq - ahead - 1;
  // ASSUMED: in segment 1 they are known to begin at 1, so what the strays do not explain is missing.
  const fromOne = segments[0]!.number === 1;
  if (fromOne && last > 0) missing.push({ from: 1, to: last });

  let pending: Damaged[] = []; // the strays that took a number since the last whole record,
  let since = fromOne ? 0 : last; // and the last number taken before them
  const settle = (gap: number) => {
    if (gap === pending.length && since >= 0) for (const [i, stray] of pending.entries()) stray.seq = since + 1 + i;
    pending = [];
    since = last;
  };
  reading: for (const segment of segments) {
    for (const line of segment.lines) {
      const why = line.foreign ? "foreign" : "corrupt";
      for (const part of partsOf(line)) {
        if ("seq" in part) {
          part.before = last;
          if (part.seq > last + 1) missing.push({ from: last + 1, to: part.seq - 1 });
          last = part.seq;
          settle(part.seq - since - 1);
          counted.push({ segment, rec: part });
        } else if (segment === newest && part.start > 0 && last + 1 > durable) {
          torn = { segment: segment.name, offset: part.start };
          break reading;
        } else {
          const stray: Damaged = { segment: segment.name, offset: part.start, bytes: part.end - part.start, why };
          damaged.push(stray);
          if (part.takes) last = pending.push(stray) && last + 1;
        }
      }
    }
    settle(pending.length);
  }
  settle(pending.length);

  // §4: a unit is complete if the last number taken reaches its end, and what D takes counts for that (ASSUMED).
  const reach = Math.max(last, durable);
  const tooLong = ({ unit, seq }: Rec) => unit > 1 && seq + unit - 1 > reach;
  const cut = counted.find(({ segment, rec }) => segment === newest && tooLong(rec))?.rec;
  if (cut) {
    torn = { segment: newest.name, offset: cut.start };
    counted = counted.filter(({ rec }) => rec.seq < cut.seq);
    damaged = damaged.filter((stray) => stray.segment !== newest.name || stray.offset < cut.start);
    missing = missing.filter((gap) => gap.from <= cut.before);
    last = cut.before;
  }
  if (durable > last) {
    missing.push({ from: last + 1, to: durable });
    last = durable;
  }

  const start = epochStart(segments, new Map(counted.toReversed().map(({ segment, rec }) => [segment, rec])));
  const end = counted.at(-1)?.rec;
  return {
    records: counted.map(({ rec: { seq, kind, crc } }) => ({ seq, kind, crc })),
    epoch: counted.filter(({ segment }) => segment.number >= start).map(({ rec }) => rec.seq),
    ...{ torn, damaged, missing, next: last + 1, format },
    closed: end?.kind === "closed" && end.seq === last, // ASSUMED: a damaged line behind it is a record, too
  };
}

if (process.argv[1] === import.meta.filename) console.log(JSON.stringify(readSession(process.argv[2] ?? "."), null, 1));
