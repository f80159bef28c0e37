// A reader of Holdfast journals, written from docs/FORMAT.md alone: it imports nothing of Holdfast. "§" cites that page, and
// "§5.2" the second of the numbered steps of section 5; "ASSUMED" marks the places where the page leaves a choice.
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
/** A record, or, without `rec`, a stray: `takes` a number or not. Each ends where the next one begins, line ends included. */
type Item = { start: number; end: number; rec: Rec | null; takes: boolean; why: Damaged["why"] };
/** `header`: its first record, if that is of kind `segment`. `sealed`: it is packed or has a tail. */
type Segment = { name: string; number: number; header: Rec | null; sealed: boolean; items: Item[] };

const MAX_LINE = 67_108_864;
const MAX_LEVELS = 1024;
const MAX_TRIES = 16;
const BEGIN = '{"seq":';
const CRC = ',"crc":"';
const TRAILER = /^,"crc":"([0-9a-f]{8})"\}$/;
const FRAME = Buffer.from("28b52ffd", "hex"); // the magic of a zstd frame
const TABLE = Buffer.from("5e2a4d18", "hex"); // 0x184D2A5E, little-endian
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }); // keeps a byte-order mark: it is no JSON (§2)

function json(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    return undefined;
  }
}

/** §2: how many levels of objects and arrays, itself counted; one more than is allowed stands for any more. */
function levels(value: unknown, left = MAX_LEVELS + 1): number {
  if (typeof value !== "object" || value === null || left === 0) return 0;
  return 1 + Object.values(value).reduce((most: number, one) => Math.max(most, levels(one, left - 1)), 0);
}

const integer = (value: unknown): number | null => (Number.isSafeInteger(value) ? (value as number) : null);
const begins = (text: Buffer): boolean => text.toString("latin1", 0, BEGIN.length) === BEGIN;
/** Whether the byte of `text` at `at` is one of `set`; there is none before its first and behind its last. */
const isOneOf = (set: string, text: Buffer, at: number) => at in text && set.includes(String.fromCharCode(text[at]!));

/** §2.1: where the content of a line (or of the rest of one) ends. */
function contentEnd(text: Buffer): number {
  let end = text.length;
  while (isOneOf("\r, \t", text, end - 1)) end--;
  return end;
}

/** §2: the record that `text` (a line without its end, or a stretch of one) is, if it is whole. */
function whole(text: Buffer) {
  const covered = text.subarray(0, Math.max(0, text.length - 18));
  const crc = TRAILER.exec(text.toString("latin1", covered.length))?.[1];
  if (!crc || !begins(covered) || text.length >= MAX_LINE || crc32(covered) !== Number.parseInt(crc, 16)) return null;
  const value = json(text) as Record<string, unknown> | undefined;
  if (levels(value) > MAX_LEVELS) return null;
  const seq = integer(value?.["seq"]);
  const kind = value?.["kind"];
  if (!value || seq === null || seq < 1 || typeof kind !== "string" || typeof value["at"] !== "string") return null;
  // §3: what is not of its type is absent. §6: `format`, `epoch` and `after` are members of the header.
  const header = kind === "segment" ? value : {};
  const format = typeof header["format"] === "string" ? header["format"] : null;
  const [epoch, after] = [integer(header["epoch"]), placeOf(header["after"])];
  const unit = Math.max(integer(value["unit"]) ?? 1, 1);
  return { seq, kind, crc, unit, synced: integer(value["synced"]) ?? 0, format, epoch, after };
}

/** §6: the place that `after` names. ASSUMED: it is absent if it is not a segment's number and a count of bytes. */
function placeOf(value: unknown): { segment: number; bytes: number } | null {
  const members = (value ?? {}) as Record<string, unknown>;
  const [segment, bytes] = [integer(members["segment"]) ?? 0, integer(members["bytes"]) ?? -1];
  return segment < 1 || bytes < 0 ? null : { segment, bytes };
}

/** §2, the steps: the whole records in a line that is not whole. `ended`: it has a `\n`. */
function salvage(text: Buffer, ended: boolean): { start: number; end: number; rec: Rec }[] {
  const found: ReturnType<typeof salvage> = [];
  const content = contentEnd(text);
  const stops: number[] = []; // step 2
  for (let at = text.indexOf(CRC); at !== -1; at = text.indexOf(CRC, at + 1)) {
    const stop = at + 18;
    if (!TRAILER.test(text.toString("latin1", at, stop))) continue;
    if (stop === content || !isOneOf(",}]", text, stop)) stops.push(stop);
  }
  let tries = 0;
  const attempt = (start: number, end: number): boolean => {
    if (++tries > MAX_TRIES) return false; // step 5
    const rec = whole(text.subarray(start, end));
    if (rec) found.push({ start, end, rec });
    return rec !== null;
  };
  const aside: number[] = [];
  for (let at = text.indexOf(BEGIN), next = 0; at !== -1 && tries < MAX_TRIES; at = text.indexOf(BEGIN, next)) {
    next = at + 1;
    // Step 3. A record "ends there" if that byte is the one behind it: a flipped line end may have become a `:`.
    if (isOneOf(":,[", text, at - 1) && found.at(-1)?.end !== at - 1) aside.push(at);
    else next = stops.find((stop) => stop > at && tries < MAX_TRIES && attempt(at, stop)) ?? next;
  }
  const done = found.at(-1)?.end ?? 0;
  const retry = ended && stops.at(-1) === content && done !== content; // step 4
  if (retry) aside.some((at) => at >= done && attempt(at, content));
  return found;
}

const stray = (start: number, takes: boolean) => ({ start, end: start, rec: null, takes, why: "corrupt" }) as Item;

/** §2: the records and strays of `bytes`, which stand at `base` in their segment. */
function split(bytes: Buffer, base: number): Item[] {
  const items: Item[] = [];
  const record = (at: number, rec: Rec) => items.push({ ...stray(at, false), rec });
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    const newline = bytes.indexOf(0x0a, start);
    end = newline === -1 ? bytes.length : newline;
    const text = bytes.subarray(start, end);
    const at = base + start;
    const rec = whole(isOneOf("\r", text, text.length - 1) ? text.subarray(0, -1) : text);
    if (rec) {
      record(at, rec);
    } else if (!begins(text) && json(text) !== undefined) {
      items.push({ ...stray(at, true), why: "foreign" });
    } else {
      let done = 0;
      for (const one of salvage(text, newline !== -1)) {
        if (one.start > done) items.push(stray(at + done, false));
        record(at + one.start, one.rec);
        done = one.end;
      }
      if (done === 0 || contentEnd(text.subarray(done)) > 0) items.push(stray(at + done, true));
    }
  }
  return items;
}

/** The content size in the header of the zstd frame that `file` has at `at` (RFC 8878, 3.1.1.1); 0 if it has none. */
function contentSize(file: Buffer, at: number): number {
  const descriptor = file[at + 4] ?? 0;
  const single = (descriptor >> 5) & 1;
  const bytes = [single, 2, 4, 6][descriptor >> 6]!; // of 8 bytes, 6 are enough
  const field = at + 5 + (1 - single) + [0, 1, 2, 4][descriptor & 3]!;
  if (bytes === 0 || field + bytes > file.length) return 0;
  return file.readUIntLE(field, bytes) + (bytes === 2 ? 256 : 0);
}

/** §7: where each frame begins and ends, and its plain size: by the table, or, if that does not fit the file, by the magics. */
function framesOf(file: Buffer): { from: number; to: number; plain: number }[] {
  const count = file.length < 16 ? 0 : file.readUInt32LE(file.length - 8);
  const table = file.length - count * 8 - 16; // magic, size, the pairs, the count, "hfst"
  const frames: ReturnType<typeof framesOf> = [];
  if (table >= 0 && file.indexOf(TABLE, table) === table && file.toString("latin1", file.length - 4) === "hfst") {
    let from = 0;
    for (let at = table + 8; at < file.length - 8; at += 8) {
      const to = from + file.readUInt32LE(at);
      frames.push({ from, to, plain: file.readUInt32LE(at + 4) });
      from = to;
    }
    if (from === table) return frames;
    frames.length = 0;
  }
  // ASSUMED: the plain size is the content size that the frame tells then. What follows a frame is not looked at.
  for (let from = file.indexOf(FRAME); from !== -1; ) {
    const next = file.indexOf(FRAME, from + 1);
    frames.push({ from, to: next === -1 ? file.length : next, plain: contentSize(file, from) });
    from = next;
  }
  return frames;
}

/** §7: the records and strays of a packed segment, and its plain size. */
function unpack(file: Buffer): { items: Item[]; size: number } {
  let items: Item[] = [];
  let size = 0;
  for (const { from, to, plain } of framesOf(file)) {
    let bytes: Buffer | null = null;
    try {
      bytes = zstdDecompressSync(file.subarray(from, to)); // checks the frame's checksum, too
    } catch {}
    items = items.concat(bytes?.length === plain ? split(bytes, size) : stray(size, true)); // each holds whole lines
    size += plain;
  }
  return { items, size };
}

/** §4: makes strays of the records that do not count. */
function order(items: Item[]): void {
  const counting: { item: Item; rec: Rec; taken: number }[] = []; // `taken`: number-taking strays before it
  let taken = 0;
  for (const item of items) {
    const { rec } = item;
    if (item.takes) taken++;
    if (!rec) continue;
    const at = counting.findLastIndex((one) => one.rec.seq < rec.seq) + 1;
    const first = counting[at]; // F
    const before = counting[at - 1];
    if (first) {
      const same = first.rec.seq === rec.seq && first.rec.crc === rec.crc;
      const right = before
        ? first.rec.seq - before.rec.seq - 1 <= first.taken - before.taken // it came without a jump
        : rec.kind !== "segment" || first.rec.kind === "segment";
      if (same || right) {
        item.rec = null;
        continue;
      }
      for (const pasted of counting.splice(at)) pasted.item.rec = null;
    }
    counting.push({ item, rec, taken });
  }
}

/** §1: the offsets of the tails, among the names `all`, of the segment `name`. ASSUMED: they are not padded. */
function tailsOf(name: string, all: string[]): number[] {
  if (packed(name)) return []; // "beside a plain segment"
  const offsets = all.filter((one) => one.startsWith(`${name}.tail-`)).map((one) => one.slice(name.length + 6));
  return offsets.filter((one) => /^(0|[1-9]\d{0,14})$/.test(one)).map(Number);
}

/** §1, §6: the bytes of a segment. `end`: where its own end, by the header of the one that comes behind it. */
function bytesOf(path: string, tails: number[], end: number | null): Buffer {
  const file = readFileSync(path);
  const offset = end ?? Math.max(...tails, -1);
  if (offset < 0) return file;
  // ASSUMED: if its own bytes end before that, the tail follows at once; offsets of damage are those in the two together.
  const own = file.subarray(0, offset);
  return tails.includes(offset) ? Buffer.concat([own, readFileSync(`${path}.tail-${offset}`)]) : own;
}

/**
 * §4, the end: the items up to the first record whose seq is that of the next header, or greater. ASSUMED: if that header is
 * not whole all of them count, even where the seqs do not grow then from one segment to the next.
 */
function before(header: Rec | null | undefined, items: Item[]): Item[] {
  const cut = header ? items.findIndex(({ rec }) => rec && rec.seq >= header.seq) : -1;
  return cut === -1 ? items : items.slice(0, cut);
}

/** §1, §6: the segments that count, in the order of their numbers. */
function segmentsOf(folder: string): Segment[] {
  const names = new Map<number, string>();
  const all = readdirSync(folder).sort();
  for (const name of all) {
    const digits = /^(\d{6,})\.jsonl(\.zst)?$/.exec(name)?.[1];
    const number = Number(digits);
    if (digits === undefined || number < 1 || String(number).padStart(6, "0") !== digits) continue;
    if (!names.has(number)) names.set(number, name); // §7: the plain one counts; it sorts first
  }
  if (names.size === 0) throw new Error(`${folder} is no session: it has no segment`);
  const counting: Segment[] = [];
  for (const [number, name] of [...names].sort(([a], [b]) => b - a)) {
    const next = counting[0]?.header;
    // §6. ASSUMED: if the segment that `after` names is not there, the next lower one comes before, with all its bytes; and if
    // it names none before its own, it says nothing.
    if (next?.after && number > next.after.segment) continue;
    // ASSUMED: a packed segment holds what counts of its tail, too, so that `bytes` does not end it.
    const end = next?.after?.segment === number && !packed(name) ? next.after.bytes : null;
    const tails = tailsOf(name, all);
    const file = bytesOf(join(folder, name), tails, end);
    const { items, size } = packed(name) ? unpack(file) : { items: split(file, 0), size: file.length };
    for (const [i, item] of items.entries()) item.end = items[i + 1]?.start ?? size;
    order(items);
    const first = items.find((item) => item.rec)?.rec; // ASSUMED: a header need not stand at offset 0
    const header = first?.kind === "segment" ? first : null;
    // §4. ASSUMED: the header says this even if it does not count itself, by the segment behind it.
    counting.unshift({ number, name, header, sealed: packed(name) || tails.length > 0, items: before(next, items) });
  }
  return counting;
}

const packed = (name: string): boolean => name.endsWith(".zst");
const firstOf = (segment: Segment): Rec | undefined => segment.items.find((item) => item.rec)?.rec ?? undefined;
const markOf = (items: Item[]): number => items.reduce((most, { rec }) => Math.max(most, rec?.synced ?? 0), 0); // §5.1, D

/** §5.1, B of the first segment that is read. */
function baseOf(items: Item[]): number {
  const first = items.findIndex((item) => item.rec);
  const strays = items.slice(0, Math.max(first, 0)).filter((item) => item.takes).length;
  return Math.max(0, (items[first]?.rec?.seq ?? 0) - 1 - strays);
}

/** §5.2: the index of the stray that is torn, or the number of items. */
function tornStray(items: Item[], base: number, known: number): number {
  let [previous, n, next] = [base, 0, 0]; // P, n, and the index of the next record
  for (const [i, { rec, takes }] of items.entries()) {
    if (rec) {
      [previous, n] = [rec.seq, 0];
      continue;
    }
    while (next < items.length && (next < i || !items[next]!.rec)) next++;
    const f = (items[next]?.rec?.seq ?? Number.POSITIVE_INFINITY) - previous - 1;
    if (f > 0 && previous + Math.min(n + 1, f) > known) return i;
    if (takes) n++;
  }
  return items.length;
}

/** §5.1 to 5.4: the items of the newest segment that the journal consists of. `base`: B. */
function untorn(all: Item[], base: number): Item[] {
  const known = Math.max(markOf(all), base + 1); // K
  for (let items = all; ; ) {
    // Step 2. After a unit was cut off it finds the same for the strays before the last record as it did before.
    items = items.slice(0, tornStray(items, base, known));
    let last = base; // step 3
    for (const { rec, takes } of items) last = rec ? rec.seq : last + (takes ? 1 : 0);
    const cut = items.findLastIndex((item) => item.rec && item.rec.unit > 1); // step 4
    const { rec, start } = items[cut] ?? {};
    if (!rec || rec.seq + rec.unit - 1 <= last || rec.seq <= known || start === 0) return items;
    items = items.slice(0, cut);
  }
}

/** §6: the number of the segment that begins the current epoch. */
function epochStart(segments: Segment[]): number {
  for (const segment of segments.toReversed()) {
    const first = firstOf(segment);
    if (first?.kind === "segment" && first.epoch !== null) return first.epoch;
    if (first?.kind === "epoch") return segment.number;
  }
  return 0; // nothing tells: back to the first segment
}

export function readSession(folder: string): Reading {
  const segments = segmentsOf(folder);
  let format: string | null = null; // ASSUMED: that of the newest header that can be read
  for (const segment of segments) {
    format = segment.header?.format ?? format;
    if (Number.parseInt(format ?? "", 10) > 1) throw new Error(`${segment.name} has the newer format ${format}`); // §6
  }

  const counted: { segment: Segment; rec: Rec }[] = [];
  const damaged: Damaged[] = [];
  const missing: Reading["missing"] = [];
  let torn: Reading["torn"] = null;
  let previous = baseOf(segments[0]!.items); // the seq of the record before
  let pending: Damaged[] = []; // the number-taking strays behind it
  const settle = () => {
    for (const [i, one] of pending.entries()) one.seq = previous + 1 + i;
  };
  const newest = segments.at(-1)!;
  const mark = markOf(newest.items); // §5.1, D: of those behind the tear, too
  for (const segment of segments) {
    const { name, items: all } = segment;
    // §5: in a sealed segment nothing is torn. B is the last number taken so far.
    const items = segment === newest && !segment.sealed ? untorn(all, previous + pending.length) : all;
    const tear = all[items.length];
    if (tear) torn = { segment: name, offset: tear.start };
    segment.items = items;
    for (const { rec, start, end, takes, why } of items) {
      if (!rec) {
        const one: Damaged = { segment: name, offset: start, bytes: end - start, why };
        damaged.push(one);
        if (takes) pending.push(one);
        continue;
      }
      // §5, behind the steps. "Between two records": nothing is missing before the first one.
      const from = previous + pending.length + 1;
      if (from === rec.seq) settle();
      else if (from < rec.seq && counted.length > 0) missing.push({ from, to: rec.seq - 1 });
      [previous, pending] = [rec.seq, []];
      counted.push({ segment, rec });
    }
  }
  settle(); // "and at the end"
  const last = previous + pending.length; // §5.3
  // ASSUMED: step 5 is for a newest segment that is sealed, too, and so is the next seq.
  if (mark > last) missing.push({ from: last + 1, to: mark }); // §5.5

  const start = epochStart(segments);
  return {
    records: counted.map(({ rec: { seq, kind, crc } }) => ({ seq, kind, crc })),
    epoch: counted.filter(({ segment }) => segment.number >= start).map(({ rec }) => rec.seq),
    ...{ torn, damaged, missing, next: Math.max(last, mark) + 1, format },
    closed: counted.at(-1)?.rec.kind === "closed" && torn === null, // §5
  };
}

if (process.argv[1] === import.meta.filename) console.log(JSON.stringify(readSession(process.argv[2] ?? "."), null, 1));
