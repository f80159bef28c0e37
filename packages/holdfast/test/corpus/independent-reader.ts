// A reader of Holdfast journals, written from docs/FORMAT.md alone: it imports nothing of Holdfast. "§" cites that
// page, and "§5.2" the second of the numbered steps of section 5; "ASSUMED" marks the places where the page leaves a
// choice.
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
/**
 * A record, or, without `rec`, a stray: `takes` a number or not. Each ends where the next one begins, line ends
 * included.
 */
type Item = { start: number; end: number; rec: Rec | null; takes: boolean; why: Damaged["why"] };
/**
 * `header`: its first record, if that is of kind `segment`. `sealed`: it is packed or has a tail, whatever comes behind
 * it. `begin`: N of the segment before it (§4), or Infinity. `base`: B, if that segment was not read (§5.1).
 */
type Segment = {
  name: string;
  number: number;
  header: Rec | null;
  sealed: boolean;
  begin: number;
  base: number;
  items: Item[];
};

const MAX_LINE = 67_108_864;
const MAX_FOREIGN = 1_048_576;
const ENDLESS = 134_217_728;
const MAX_LEVELS = 1_024;
const MAX_SEGMENT = 2_147_483_648;
const MAX_TRIES = 16;
const BEGIN = '{"seq":';
const CRC = ',"crc":"';
const TRAILER = /^,"crc":"([0-9a-f]{8})"\}$/;
const FRAME = Buffer.from("28b52ffd", "hex"); // the magic of a zstd frame
const TABLE = Buffer.from("5e2a4d18", "hex"); // 0x184D2A5E, little-endian
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }); // keeps a byte-order mark: it is no JSON (§2)

/** §2: undefined if it is no JSON, or longer or deeper than a record may be. */
function json(bytes: Uint8Array): unknown {
  try {
    const value: unknown = bytes.length < MAX_LINE ? JSON.parse(utf8.decode(bytes)) : undefined;
    return levels(value, MAX_LEVELS + 1) > MAX_LEVELS ? undefined : value;
  } catch {
    return undefined;
  }
}

/** How deep arrays and objects are nested, up to `most`. */
function levels(value: unknown, most: number): number {
  if (typeof value !== "object" || value === null || most === 0) return 0;
  return 1 + Object.values(value).reduce((deepest: number, one) => Math.max(deepest, levels(one, most - 1)), 0);
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

/** §6: the place that `after` names. That it is before the header's own segment, `placeBefore` checks. */
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
    // Step 3. ASSUMED: a record "ends there" if this one begins where it ends. So the byte before is a `}`, and that
    // decides.
    if (isOneOf(":,[", text, at - 1)) aside.push(at);
    else
      next = stops.find((stop) => stop > at && stop - at < MAX_LINE && tries < MAX_TRIES && attempt(at, stop)) ?? next;
  }
  const done = found.at(-1)?.end ?? 0;
  const retry = ended && stops.at(-1) === content && done !== content; // step 4
  if (retry) aside.some((at) => at >= done && content - at < MAX_LINE && attempt(at, content));
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
    } else if (!begins(text) && text.length <= MAX_FOREIGN && json(text) !== undefined) {
      items.push({ ...stray(at, true), why: "foreign" });
    } else {
      let done = 0;
      for (const one of text.length < ENDLESS ? salvage(text, newline !== -1) : []) {
        if (one.start > done) items.push(stray(at + done, false));
        record(at + one.start, one.rec);
        done = one.end;
      }
      if (done === 0 || contentEnd(text.subarray(done)) > 0) items.push(stray(at + done, true));
    }
  }
  return items;
}

/**
 * The header of the zstd frame that `file` has at `at` (RFC 8878, 3.1.1.1): its content size and where its blocks
 * begin; null if it has none, or none with a size.
 */
function frameAt(file: Buffer, at: number): { plain: number; blocks: number; checksum: number } | null {
  const descriptor = file[at + 4] ?? 8;
  if (file.indexOf(FRAME, at) !== at || (descriptor & 8) !== 0) return null;
  const single = (descriptor >> 5) & 1;
  const bytes = [single, 2, 4, 8][descriptor >> 6]!;
  const field = at + 5 + (1 - single) + [0, 1, 2, 4][descriptor & 3]!;
  if (bytes === 0 || field + bytes > file.length) return null;
  const plain =
    bytes === 8 ? Number(file.readBigUInt64LE(field)) : file.readUIntLE(field, bytes) + (bytes === 2 ? 256 : 0);
  return { plain, blocks: field + bytes, checksum: descriptor & 4 };
}

/** Where the frame at `at` ends, by its blocks (RFC 8878, 3.1.1.2); null if it does not. */
function frameEnd(file: Buffer, at: number): number | null {
  const frame = frameAt(file, at);
  if (!frame || frame.plain > MAX_LINE) return null;
  for (let block = frame.blocks; block + 3 <= file.length; ) {
    const word = file.readUIntLE(block, 3);
    const [kind, size] = [(word >> 1) & 3, word >> 3];
    if (kind === 3 || size > 131_072) return null;
    block += 3 + (kind === 1 ? 1 : size);
    if ((word & 1) === 1) return block + frame.checksum <= file.length ? block + frame.checksum : null;
  }
  return null;
}

function unpackFrame(file: Buffer, from: number, to: number, plain: number): Buffer | null {
  if (plain > MAX_LINE || frameAt(file, from)?.plain !== plain) return null;
  try {
    const bytes = zstdDecompressSync(file.subarray(from, to)); // checks the frame's checksum, too
    return bytes.length === plain ? bytes : null;
  } catch {
    return null;
  }
}

/** §7: the plain bytes of each frame, null where it is a stray. */
function* framesOf(file: Buffer): Generator<{ plain: number; bytes: Buffer | null }> {
  let passing = false;
  for (let at = 0; at < file.length && file.indexOf(TABLE, at) !== at; ) {
    const end = frameEnd(file, at);
    const plain = frameAt(file, at)?.plain ?? 0;
    const bytes = end === null ? null : unpackFrame(file, at, end, plain);
    const follows =
      end === file.length || (end !== null && (file.indexOf(FRAME, end) === end || file.indexOf(TABLE, end) === end));
    if (end !== null && (follows || bytes)) {
      yield { plain, bytes };
      at = end;
      passing = false;
      continue;
    }
    if (!passing) yield { plain: 1, bytes: null };
    passing = true;
    const next = [file.indexOf(FRAME, at + 1), file.indexOf(TABLE, at + 1)].filter((place) => place !== -1);
    at = next.length === 0 ? file.length : Math.min(...next);
  }
}

/** §7: the records and strays of a packed segment, and its plain size. */
function unpack(file: Buffer): { items: Item[]; size: number } {
  let items: Item[] = [];
  let size = 0;
  for (const { plain, bytes } of framesOf(file)) {
    const beyond = size + plain > MAX_SEGMENT;
    items = items.concat(bytes && !beyond ? split(bytes, size) : stray(size, true)); // each holds whole lines
    size += plain;
    if (beyond) break;
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

/** §1: the offsets of the tails, among the names `all`, of the segment `name`. */
function tailsOf(name: string, all: string[]): number[] {
  if (packed(name)) return []; // "beside a packed segment alone, tails are ignored"
  const offsets = all.filter((one) => one.startsWith(`${name}.tail-`)).map((one) => one.slice(name.length + 6));
  // ASSUMED: a tail whose offset is no exact number (2^53 or more) is none.
  return offsets.filter((one) => /^(0|[1-9]\d*)$/.test(one) && Number.isSafeInteger(Number(one))).map(Number);
}

/** §1, §6: the bytes of a plain segment. `named`: the place in it that the segment behind it names. */
function bytesOf(path: string, tails: number[], named: number | null): Buffer {
  const file = readFileSync(path);
  const offset = named ?? Math.max(...tails, -1);
  if (offset < 0) return file;
  const own = file.subarray(0, offset); // all of it, if it is shorter: "the tail follows at once"
  return tails.includes(offset) ? Buffer.concat([own, readFileSync(`${path}.tail-${offset}`)]) : own;
}

/** §6: the place that the header of `segment` names, if it is whole and that is the place of a lower segment. */
function placeBefore(segment: Segment | undefined): { segment: number; bytes: number } | null {
  const after = segment?.header?.after;
  return after && after.segment < segment.number ? after : null;
}

/** The first record, and how many number-taking strays stand before it, or in all if there is none. */
function firstOf(items: Item[]): { rec: Rec | null; strays: number } {
  const first = items.find((item) => item.rec);
  const before = first ? items.slice(0, items.indexOf(first)) : items;
  return { rec: first?.rec ?? null, strays: before.filter((item) => item.takes).length };
}

/**
 * §4: the number that a segment with these items begins with, or a lower one, `next`, that one behind it begins with.
 */
function beginOf(items: Item[], next: number): number {
  const { rec, strays } = firstOf(items);
  const begin = (rec?.seq ?? next) - (rec?.kind !== "segment" && strays > 0 ? 1 : 0);
  return Math.max(1, Math.min(begin, next));
}

/** §4, the end: the items before the first record whose seq is N (`next`) or greater. */
function beforeTheNext(items: Item[], next: number): Item[] {
  const cut = items.findIndex(({ rec }) => rec && rec.seq >= next);
  return cut === -1 ? items : items.slice(0, cut);
}

/** §1, §6: the segments that count, in the order of their numbers. */
function segmentsOf(folder: string): Segment[] {
  const names = new Map<number, string>();
  const all = readdirSync(folder).sort();
  for (const name of all) {
    const digits = /^(\d{6,15})\.jsonl(\.zst)?$/.exec(name)?.[1];
    const number = Number(digits);
    if (digits === undefined || number < 1 || String(number).padStart(6, "0") !== digits) continue;
    if (!names.has(number)) names.set(number, name); // §7: the plain one counts; it sorts first
  }
  if (names.size === 0) throw new Error(`${folder} is no session: it has no segment`);
  const counting: Segment[] = [];
  for (const [number, name] of [...names].sort(([a], [b]) => b - a)) {
    const after = placeBefore(counting[0]);
    if (after && number > after.segment) continue; // §6: it is passed over
    const tails = tailsOf(name, all);
    const { items, size } = itemsOf(join(folder, name), tails, after?.segment === number ? after.bytes : null);
    for (const [i, item] of items.entries()) item.end = items[i + 1]?.start ?? size;
    order(items);
    const { rec, strays } = firstOf(items);
    const header = rec?.kind === "segment" ? rec : null; // also if it does not count itself (§6)
    const sealed = packed(name) || tails.length > 0;
    const next = counting[0]?.begin ?? Number.POSITIVE_INFINITY;
    const [begin, base] = [beginOf(items, next), rec ? Math.max(0, rec.seq - 1 - strays) : 0];
    counting.unshift({ number, name, header, sealed, begin, base, items: beforeTheNext(items, next) });
  }
  return counting;
}

/** §1, §6, §7: the records and strays of a segment, before they are put in order, and how many bytes it has. */
function itemsOf(path: string, tails: number[], named: number | null): { items: Item[]; size: number } {
  if (packed(path)) return unpack(readFileSync(path)); // "if it is packed, it counts to its end"
  const bytes = bytesOf(path, tails, named);
  return { items: split(bytes, 0), size: bytes.length };
}

const packed = (name: string): boolean => name.endsWith(".zst");
const markOf = (items: Item[]): number => items.reduce((most, { rec }) => Math.max(most, rec?.synced ?? 0), 0); // §5.1, D

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
    const [first, second] = segment.items.flatMap(({ rec }) => rec ?? []);
    const epoch = segment.header?.epoch ?? null;
    if (epoch !== null && epoch >= 1 && epoch <= segment.number) return epoch;
    if ((first?.kind === "segment" ? second : first)?.kind === "epoch") return segment.number;
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
  let taken = segments[0]!.base; // the last number taken
  for (const [i, segment] of segments.entries()) {
    const { name, items: all } = segment;
    const behind = segments[i + 1];
    // §5.1, B: the last number taken so far, "but less than the number that this segment begins with".
    if (i > 0) taken = Math.min(taken, segment.begin - 1);
    // In a sealed segment nothing is torn.
    const items = segment.sealed || behind ? all : untorn(all, taken);
    const tear = all[items.length];
    if (tear) torn = { segment: name, offset: tear.start };
    segment.items = items;
    let previous = taken; // B, or the seq of the record before
    let pending: Damaged[] = []; // the number-taking strays behind that
    const tellSeqs = (free: number) => {
      if (free === pending.length) for (const [n, one] of pending.entries()) one.seq = previous + 1 + n;
    };
    for (const { rec, start, end, takes, why } of items) {
      if (!rec) {
        const one: Damaged = { segment: name, offset: start, bytes: end - start, why };
        damaged.push(one);
        if (takes) pending.push(one);
        continue;
      }
      // §5, behind the steps.
      const from = previous + pending.length + 1;
      tellSeqs(rec.seq - previous - 1);
      if (from < rec.seq) missing.push({ from, to: rec.seq - 1 });
      [previous, pending] = [rec.seq, []];
      counted.push({ segment, rec });
    }
    const most = (behind?.begin ?? Number.POSITIVE_INFINITY) - 1;
    tellSeqs(behind && Number.isFinite(most) ? most - previous : pending.length);
    taken = Math.min(previous + pending.length, most);
    // §5.5; D is that of the records behind the tear, too. ASSUMED: each sealed segment needs this step, not the newest
    // alone, and the seqs that the segments behind it begin with are not missing.
    const mark = Math.min(markOf(all), most);
    if (mark <= taken) continue;
    missing.push({ from: taken + 1, to: mark });
    taken = mark;
  }

  const start = epochStart(segments);
  return {
    records: counted.map(({ rec: { seq, kind, crc } }) => ({ seq, kind, crc })),
    epoch: counted.filter(({ segment }) => segment.number >= start).map(({ rec }) => rec.seq),
    ...{ torn, damaged, missing, next: taken + 1, format },
    closed: segments.at(-1)!.items.findLast((item) => item.rec)?.rec?.kind === "closed" && torn === null, // §5
  };
}

if (process.argv[1] === import.meta.filename) console.log(JSON.stringify(readSession(process.argv[2] ?? "."), null, 1));
