// Random session folders: what writers of FORMAT.md leave behind, and what damage, other writers and strangers make of
// it. Nothing here imports Holdfast. "§" cites FORMAT.md.
import { constants, crc32, zstdCompressSync } from "node:zlib";
import fc from "fast-check";

/** The files of a session folder. */
export type Folder = Map<string, Buffer>;

export const SESSION = "01a1dd00-0000-7000-8000-000000000001";

// What a plan is made of. Small numbers count lines, or say which of several; they are taken modulo what is there.

type Mark = "none" | "before" | "self" | "ahead" | "old";
type LineEnd = "\n" | "\r\n" | "" | " ,\t\r\n" | "\r" | ":";
interface RecordPlan {
  readonly is: "record";
  /** How far its seq is from the one that is due. */
  readonly jump: number;
  readonly mark: Mark;
  readonly unit: number;
  /** What its payload holds: a record as an object, some in a list, or a trailer in a text. */
  readonly holds: "nothing" | "record" | "records" | "text";
  readonly kind: string;
  readonly ending: LineEnd;
}
const STRAYS = ["foreign", "text", "nuls", "blank", "flipped", "cut", "number", "space", "glued"] as const;
interface StrayPlan {
  readonly is: "stray";
  readonly form: (typeof STRAYS)[number];
  /** Whether a record was here once. */
  readonly takes: boolean;
  readonly ending: LineEnd;
}
/** A line of this session once more. */
interface CopyPlan {
  readonly is: "copy";
  readonly of: number;
}
type LinePlan = RecordPlan | StrayPlan | CopyPlan;

interface TailPlan {
  /** Behind which line of the segment it begins, and how many more it holds. */
  readonly at: number;
  readonly keeps: number;
  readonly more: readonly LinePlan[];
  readonly padded: boolean;
}
interface SegmentPlan {
  /** How many numbers of segments are left out before it. */
  readonly skips: number;
  readonly role: "rolled" | "epoch" | "passed over";
  readonly header: "good" | "flipped" | "nuls" | "cut" | "gone" | "twice" | "late" | "unmarked" | "newer";
  readonly jump: number;
  readonly after: "none" | "tail" | "end" | "line" | "beyond" | "missing" | "own" | "odd" | "earlier";
  readonly lines: readonly LinePlan[];
  readonly end: "whole" | "unended" | "torn" | "unit" | "closed";
  readonly tail: TailPlan | null;
  readonly otherTails: readonly TailPlan[];
  readonly late: readonly LinePlan[];
  readonly packed: "no" | "yes" | "both" | "frames" | "tail beside" | "table gone";
}
interface DamagePlan {
  readonly is: "flip" | "nuls" | "cut" | "remove" | "insert" | "delete line" | "double line" | "swap lines";
  readonly file: number;
  /** Where: a share of the file, in 1/1000. */
  readonly at: number;
  readonly size: number;
}
export interface FolderPlan {
  readonly segments: readonly SegmentPlan[];
  readonly damage: readonly DamagePlan[];
  readonly others: readonly string[];
}

const few = <T>(item: fc.Arbitrary<T>, max: number, weight = 4) =>
  fc.oneof({ weight, arbitrary: fc.constant<T[]>([]) }, { weight: 1, arbitrary: fc.array(item, { maxLength: max }) });
const mostly = <T>(usual: T, ...others: T[]) =>
  fc.oneof({ weight: 8, arbitrary: fc.constant(usual) }, { weight: 2, arbitrary: fc.constantFrom(usual, ...others) });

const ENDINGS = ["\n", "\r\n", "", " ,\t\r\n", "\r", ":"] as const;
const recordPlan: fc.Arbitrary<LinePlan> = fc.record({
  is: fc.constant("record" as const),
  jump: mostly(0, 1, 2, 3, 50, -1, -2, -5),
  mark: fc.constantFrom<Mark>("none", "none", "none", "before", "before", "self", "ahead", "old"),
  unit: mostly(1, 2, 3, 4),
  holds: mostly<RecordPlan["holds"]>("nothing", "record", "records", "text"),
  kind: mostly("message", "closed", "opened", "segment", "epoch"),
  ending: mostly<LineEnd>(...ENDINGS),
});
const strayPlan: fc.Arbitrary<LinePlan> = fc.record({
  is: fc.constant("stray" as const),
  form: fc.constantFrom(...STRAYS),
  takes: fc.boolean(),
  ending: mostly<LineEnd>(...ENDINGS),
});
const copyPlan: fc.Arbitrary<LinePlan> = fc.record({ is: fc.constant("copy" as const), of: fc.nat(30) });
const linePlan = fc.oneof(
  { weight: 12, arbitrary: recordPlan },
  { weight: 3, arbitrary: strayPlan },
  { weight: 1, arbitrary: copyPlan },
);
const tailPlan: fc.Arbitrary<TailPlan> = fc.record({
  at: fc.nat(8),
  keeps: fc.nat(3),
  more: few(linePlan, 3),
  padded: mostly(false, true),
});
const segmentPlan: fc.Arbitrary<SegmentPlan> = fc.record({
  skips: mostly(0, 1, 2),
  role: fc.constantFrom<SegmentPlan["role"]>("rolled", "rolled", "rolled", "epoch", "passed over"),
  header: mostly<SegmentPlan["header"]>(
    ...(["good", "flipped", "nuls", "cut", "gone", "twice", "late", "unmarked", "newer"] as const),
  ),
  jump: mostly(0, 1, 2, -1, -3),
  after: fc.constantFrom<SegmentPlan["after"]>(
    ...(["none", "none", "tail", "tail", "tail", "end", "line", "beyond", "missing", "own", "odd", "earlier"] as const),
  ),
  lines: fc.array(linePlan, { maxLength: 7 }),
  end: mostly<SegmentPlan["end"]>("whole", "unended", "torn", "unit", "closed"),
  tail: fc.option(tailPlan, { freq: 2 }),
  otherTails: few(tailPlan, 2, 6),
  late: few(linePlan, 3),
  packed: mostly<SegmentPlan["packed"]>(...(["no", "yes", "both", "frames", "tail beside", "table gone"] as const)),
});
const damagePlan: fc.Arbitrary<DamagePlan> = fc.record({
  is: fc.constantFrom<DamagePlan["is"]>(
    ...(["flip", "flip", "nuls", "cut", "remove", "insert", "delete line", "double line", "swap lines"] as const),
  ),
  file: fc.nat(9),
  at: fc.nat(999),
  size: fc.nat(300),
});
const OTHERS = [
  "000002.claim",
  "000009.claim",
  "000002.jsonl.tmp",
  ".000009.jsonl.1f.tmp",
  "000009.jsonl.1f.tmp",
  "0000009.jsonl",
  "00009.jsonl",
  "000009.jsonl.bak",
  "000009.JSONL",
  "000009.jsonl.zst.tmp",
  "000001.jsonl.tail-",
  "000001.jsonl.tail-5.tmp",
  "000001.jsonl.tail--5",
  "000001.jsonl.tail-1e2",
  "000003.jsonl.tail-10",
  "quarantine/000001.jsonl-10-00000000.torn",
];
export const folderPlan: fc.Arbitrary<FolderPlan> = fc.record({
  segments: fc.array(segmentPlan, { minLength: 1, maxLength: 5 }),
  damage: few(damagePlan, 3, 1),
  others: few(fc.constantFrom(...OTHERS), 2),
});

/** §2, §3: the line of a record, without its line end. */
export function lineOf(seq: number, members: object): string {
  const covered = JSON.stringify({ seq, ...members }).slice(0, -1);
  return `${covered},"crc":"${crc32(covered).toString(16).padStart(8, "0")}"}`;
}

type Members = {
  readonly unit?: number | undefined;
  readonly synced?: number | undefined;
  readonly [name: string]: unknown;
};

const TIME = Date.parse("2026-11-15T08:00:00.000Z");

/** Goes through a plan: what is written, the number that is due next, and how far all is durable. */
class Writer {
  due = 1;
  /** Each line that was written, as it stands in its file. */
  readonly lines: string[] = [];
  #written = 0;

  record(kind: string, seq: number, members: Members = {}): string {
    const { unit, synced, ...rest } = members;
    const at = new Date(TIME + 250 * this.#written++).toISOString();
    return lineOf(seq, { unit, synced, at, kind, ...rest });
  }

  write(plan: LinePlan): string {
    const text = plan.is === "record" ? this.#record(plan) : plan.is === "stray" ? this.#stray(plan) : this.#copy(plan);
    this.lines.push(text);
    return text;
  }

  #record({ jump, mark, unit, holds, kind, ending }: RecordPlan): string {
    const seq = Math.max(1, this.due + jump);
    const synced = { none: undefined, before: seq - 1, self: seq, ahead: seq + 2, old: Math.max(seq - 3, 0) }[mark];
    this.due = seq + 1;
    const inner = () => JSON.parse(this.record("message", seq + 1)) as object;
    const payload = {
      nothing: {},
      record: { inner: inner() },
      records: { inner: [inner(), inner()] },
      text: { text: ',"crc":"00000000"}', inner: { crc: "00000000" } },
    }[holds];
    const more = { epoch: { reason: "compaction" }, segment: { format: "1.1", epoch: 1 } }[kind] ?? {};
    const text = this.record(kind, seq, { unit: unit > 1 ? unit : undefined, synced, ...more, ...payload });
    return text + ending;
  }

  #stray({ form, takes, ending }: StrayPlan): string {
    const seq = this.due;
    if (takes) this.due++;
    const record = this.record("message", seq, { text: "was here" });
    const forms: Record<StrayPlan["form"], string> = {
      foreign: ' {"note":"not ours"} ',
      text: "somebody's words",
      nuls: "\0".repeat(40),
      blank: "",
      flipped: record.replace("was", "war"),
      cut: record.slice(0, 40),
      number: "17",
      space: " \t",
      glued: record.slice(0, 30) + this.record("message", seq),
    };
    return forms[form] + ending;
  }

  #copy({ of }: CopyPlan): string {
    return this.lines[of % Math.max(this.lines.length, 1)] ?? "\n";
  }
}

/** What the plan of one segment became. */
interface Built {
  readonly number: number;
  readonly file: Buffer;
  readonly tails: Map<string, Buffer>;
  /** The offset that the next header has to name, if it was taken over. */
  readonly offset: number | null;
  /** The offsets of the ends of its lines. */
  readonly ends: readonly number[];
  /** What counts of it. */
  readonly counting: Buffer;
}

const bytesOf = (lines: readonly string[]): Buffer => Buffer.from(lines.join(""), "latin1");

const ODD_PLACES = [
  { segment: 1, bytes: -1 },
  { segment: "1", bytes: 10 },
  null,
  { segment: 1 },
  { segment: 0, bytes: 10 },
];

function headerOf(writer: Writer, plan: SegmentPlan, number: number, epoch: number, built: readonly Built[]): string[] {
  const first = Math.max(1, writer.due + plan.jump);
  const before = built.at(-1);
  const line = before?.ends[plan.lines.length % Math.max(before.ends.length, 1)] ?? 0;
  const earlier = built.at(-2);
  const places: Record<SegmentPlan["after"], unknown> = {
    none: undefined,
    tail: before?.offset == null ? undefined : { segment: before.number, bytes: before.offset },
    end: before && { segment: before.number, bytes: before.counting.length },
    line: before && { segment: before.number, bytes: line },
    beyond: before && { segment: before.number, bytes: before.file.length + 500 },
    missing: { segment: Math.max(number - 1, 1), bytes: line },
    own: { segment: number + (plan.lines.length % 2), bytes: 10 },
    odd: ODD_PLACES[plan.lines.length % ODD_PLACES.length],
    earlier: earlier && { segment: earlier.number, bytes: earlier.offset ?? earlier.counting.length },
  };
  const epochs = plan.role === "epoch" || number === 1;
  const last = first + (epochs ? 2 : 0);
  const synced = plan.header === "unmarked" ? undefined : last;
  const members = { format: plan.header === "newer" ? "2.0" : "1.1", session: SESSION, segment: number, epoch };
  const header = writer.record("segment", first, { synced, ...members, after: places[plan.after], by: "test" });
  const states: Record<SegmentPlan["header"], string[]> = {
    good: [`${header}\n`],
    newer: [`${header}\n`],
    unmarked: [`${header}\n`],
    flipped: [`${header.replace("segment", "segmelt")}\n`],
    nuls: [`${"\0".repeat(header.length)}\n`],
    cut: [header.slice(0, header.length / 2)],
    gone: [],
    twice: [`${header}\n`, `${header}\n`],
    late: ["something else\n", `${header}\n`],
  };
  writer.due = last + 1;
  const lines = states[plan.header];
  if (epochs) {
    const kind = plan.role === "epoch" ? "epoch" : "session";
    lines.push(`${writer.record(kind, first + 1, { reason: "compaction" })}\n`);
    lines.push(`${writer.record("message", last, { synced, carried: true })}\n`);
  }
  writer.lines.push(...lines);
  return lines;
}

function endOf(writer: Writer, end: SegmentPlan["end"], lines: string[]): void {
  const seq = writer.due;
  if (end === "closed") {
    lines.push(`${writer.record("closed", seq, { synced: seq - 1 })}\n`);
    writer.due++;
  }
  if (end === "unended") lines.push(writer.record("message", writer.due++));
  if (end === "torn") lines.push(writer.record("message", seq).slice(0, 50));
  if (end === "unit")
    lines.push(`${writer.record("message", seq, { unit: 3 })}\n${writer.record("message", seq + 1)}\n`);
}

function segmentOf(writer: Writer, plan: SegmentPlan, number: number, epoch: number, built: readonly Built[]): Built {
  const due = writer.due;
  const lines = headerOf(writer, plan, number, epoch, built);
  const dues = lines.map(() => writer.due);
  for (const one of plan.lines) {
    lines.push(writer.write(one));
    dues.push(writer.due);
  }
  endOf(writer, plan.end, lines);
  const tails = new Map<string, Buffer>();
  const ends = lines.map((_, i) => bytesOf(lines.slice(0, i + 1)).length);
  const tail = (one: TailPlan) => {
    // A header that is whole is durable, so that no writer begins a tail before its end.
    const least = ["good", "unmarked", "twice"].includes(plan.header) ? 1 : 0;
    const from = least + (one.at % (lines.length + 1 - least));
    const to = Math.min(lines.length, from + one.keeps);
    writer.due = dues[to - 1] ?? writer.due;
    const bytes = bytesOf([...lines.slice(from, to), ...one.more.map((line) => writer.write(line))]);
    const offset = bytesOf(lines.slice(0, from)).length;
    tails.set(`${one.padded ? "0" : ""}${offset}`, bytes);
    return { offset, bytes };
  };
  for (const one of plan.otherTails) tail(one);
  const own = plan.tail && tail(plan.tail);
  const all = bytesOf(lines);
  const counting = own ? Buffer.concat([all.subarray(0, own.offset), own.bytes]) : all;
  const next = writer.due;
  // A writer that was replaced goes on in the old file, from any number.
  const late = bytesOf(plan.late.map((line) => writer.write(line)));
  writer.due = plan.role === "passed over" ? due : next;
  return { number, file: Buffer.concat([all, late]), tails, offset: own?.offset ?? null, ends, counting };
}

/** §7 */
function pack(plain: Buffer, frames: number, table: boolean): Buffer {
  const packed: Buffer[] = [];
  const sizes: number[] = [];
  for (let from = 0, i = 0; from < plain.length; i++) {
    const wanted = i === frames - 1 ? plain.length : from + Math.ceil(plain.length / frames);
    const newline = plain.indexOf(0x0a, wanted - 1);
    const to = newline === -1 ? plain.length : newline + 1;
    const params = { [constants.ZSTD_c_checksumFlag]: 1 };
    const part = plain.subarray(from, to);
    packed.push(zstdCompressSync(part, { params, pledgedSrcSize: part.length }));
    sizes.push(packed.at(-1)!.length, part.length);
    from = to;
  }
  if (!table) return Buffer.concat(packed);
  const content = Buffer.alloc(sizes.length * 4 + 4);
  for (const [i, size] of [...sizes, sizes.length / 2].entries()) content.writeUInt32LE(size, i * 4);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(0x184d2a5e, 0);
  head.writeUInt32LE(content.length + 4, 4);
  return Buffer.concat([...packed, head, content, Buffer.from("hfst")]);
}

function put(folder: Folder, { packed }: SegmentPlan, built: Built): void {
  const name = `${String(built.number).padStart(6, "0")}.jsonl`;
  const isAlone = packed === "yes" || packed === "frames" || packed === "table gone" || packed === "tail beside";
  if (!isAlone) folder.set(name, built.file);
  if (packed !== "no")
    folder.set(`${name}.zst`, pack(built.counting, packed === "yes" ? 1 : 3, packed !== "table gone"));
  if (!isAlone || packed === "tail beside")
    for (const [offset, bytes] of built.tails) folder.set(`${name}.tail-${offset}`, bytes);
}

function damage(folder: Folder, { is, file, at, size }: DamagePlan): void {
  const names = [...folder.keys()];
  const name = names[file % names.length]!;
  const bytes = Buffer.from(folder.get(name)!);
  const from = Math.floor((bytes.length * at) / 1000);
  const lines = bytes.toString("latin1").split(/(?<=\n)/);
  const n = Math.floor((lines.length * at) / 1000);
  const other = size % lines.length;
  switch (is) {
    case "flip":
      if (from < bytes.length) bytes[from]! ^= 1 << (size % 8);
      folder.set(name, bytes);
      return;
    case "nuls":
      folder.set(name, bytes.fill(0, from, Math.min(from + size, bytes.length)));
      return;
    case "cut":
      folder.set(name, bytes.subarray(0, from));
      return;
    case "remove":
      if (names.some((one) => one !== name && /^\d{6}\.jsonl(\.zst)?$/.test(one))) folder.delete(name);
      return;
    case "insert":
      folder.set(name, Buffer.concat([bytes.subarray(0, from), Buffer.from("?!\n"), bytes.subarray(from)]));
      return;
    case "delete line":
      folder.set(name, bytesOf(lines.toSpliced(n, 1)));
      return;
    case "double line":
      folder.set(name, bytesOf(lines.toSpliced(other, 0, lines[n]!)));
      return;
    case "swap lines":
      folder.set(name, bytesOf(lines.with(n, lines[other]!).with(other, lines[n]!)));
  }
}

/** The folder that a plan describes. */
export function folderOf(plan: FolderPlan): Folder {
  const folder: Folder = new Map();
  const writer = new Writer();
  const built: Built[] = [];
  let number = 0;
  let epoch = 1;
  for (const [i, one] of plan.segments.entries()) {
    number += 1 + one.skips;
    if (one.role === "epoch" || number === 1) epoch = number;
    const isPassedOver = one.role === "passed over" && built.length > 0;
    // Most headers behind a segment that is to be passed over do so.
    const after = plan.segments[i - 1]?.role === "passed over" && one.after === "none" ? "end" : one.after;
    const segment = segmentOf(
      writer,
      { ...one, after, role: one.role === "passed over" && !isPassedOver ? "rolled" : one.role },
      number,
      epoch,
      built,
    );
    put(folder, one, segment);
    if (!isPassedOver) built.push(segment);
  }
  for (const one of plan.damage) damage(folder, one);
  for (const name of plan.others) folder.set(name, Buffer.from('{"seq":1}\n'));
  return folder;
}

/** A folder as text, for a report. */
export function shown(folder: Folder): string {
  const lines: string[] = [];
  for (const [name, bytes] of folder) {
    const text = name.endsWith(".zst")
      ? `${bytes.toString("base64")} (base64)`
      : JSON.stringify(bytes.toString("latin1"));
    lines.push(`${name}, ${bytes.length} bytes: ${text.replaceAll("\\n", "\\n\n  ")}`);
  }
  return lines.join("\n");
}
