import { createHash } from "node:crypto";
import type { Edit, Grade } from "../contract/plan.ts";
import type { SessionRecord, Unit } from "../contract/record.ts";
import type { SourceFile } from "../files/source-file.ts";
import type { LineFormat } from "../jsonl/read-lines.ts";
import { readSuffix } from "../scan/read-suffix.ts";
import { type Stretch, scan } from "../scan/scan.ts";

/** A file of lines on its way to being repaired: what stays, what is replaced, what comes between. */

/** The end of a longer record is not looked for: each try costs its length. */
const SUFFIX_BYTES_MAX = 2 ** 20;

type Call = Extract<Unit, { type: "call" }>;

/** One line of the file, or one that is added. What is not needed to repair is not held. */
export interface Entry {
  /** Null if it is added. */
  readonly place: { readonly offset: number; readonly length: number; readonly line: number } | null;
  readonly state: SessionRecord["state"];
  readonly damage: readonly string[];
  readonly kind: string;
  readonly thread: string;
  id: string | null;
  parent: string | null;
  readonly calls: readonly Pick<Call, "id" | "name">[];
  /** The ids of calls whose results it holds. */
  readonly results: readonly string[];
  /** Whether people or models say something in it. */
  readonly isSpeech: boolean;
  /** Whether the user says it. */
  readonly isPrompt: boolean;
  /** What is to be written in its place; null for nothing, undefined for what is there. */
  replacement?: { readonly value: unknown; readonly grade: Grade; readonly why: string } | null;
  /** Where nothing is written: why. */
  why?: string;
}

/** The lines of a file, in its order; `valueOf` reads one again. */
export class LineEntries {
  readonly entries: Entry[] = [];
  readonly #file: SourceFile;
  readonly #format: LineFormat;
  /** Where the line after each one begins. */
  readonly #ends = new Map<Entry, number>();

  constructor(file: SourceFile, format: LineFormat, thread: string, see?: (value: unknown, index: number) => void) {
    this.#file = file;
    this.#format = format;
    let last: Entry | null = null;
    for (const stretch of scan(file.chunks(), format)) {
      if (last) this.#ends.set(last, stretch.offset);
      last = this.#entryOf(stretch, thread);
      this.entries.push(last);
      if (stretch.value !== undefined) see?.(stretch.value, this.entries.length - 1);
    }
    if (last) this.#ends.set(last, file.size);
  }

  /** Adds entries behind these, or before them. */
  insert(where: "before" | "behind", added: ReadonlyMap<Entry, readonly Entry[]>): void {
    if (added.size === 0) return;
    const all = this.entries.flatMap((entry) => {
      const more = added.get(entry) ?? [];
      return where === "before" ? [...more, entry] : [entry, ...more];
    });
    this.entries.splice(0, this.entries.length, ...all);
  }

  valueOf(entry: Entry): unknown {
    if (entry.replacement !== undefined) return entry.replacement?.value;
    const { offset, length } = entry.place!;
    return JSON.parse(Buffer.from(this.#file.read(offset, length)).toString("utf8"));
  }

  /** What the end of a record says whose beginning is lost; undefined if it says nothing. */
  suffixOf({ place, state }: Entry): unknown {
    const isHalf = state === "unreadable" || state === "partial";
    if (place === null || !isHalf || place.length > SUFFIX_BYTES_MAX) return undefined;
    return readSuffix(Buffer.from(this.#file.read(place.offset, place.length)).toString("utf8"));
  }

  /** What is still to be in the file. */
  get living(): Entry[] {
    return this.entries.filter(({ replacement }) => replacement !== null);
  }

  /**
   * Leaves out the second of two records that are the same, and the second copy of a whole session. Where the agent
   * itself writes a record again (`repeatsIds`), only one that stands there twice in a row is a mistake.
   */
  removeDoubles(repeatsIds = false): void {
    const text = (entry: Entry): string => JSON.stringify(this.valueOf(entry));
    const all = this.living;
    const half = all.length / 2;
    // Notes may be repeated, in any order: what has a name shows that they were copied.
    const isNamed = (entry: Entry): boolean =>
      entry.id !== null || this.#format.isHeader?.(this.valueOf(entry)) === true;
    const isDoubled =
      Number.isInteger(half) &&
      all.slice(0, half).some(isNamed) &&
      all.every((entry, at) => at < half || text(entry) === text(all[at - half]!));
    for (const entry of isDoubled ? all.slice(half) : []) {
      entry.replacement = null;
      entry.why = "removes the second copy of the session";
    }
    const first = new Map<string, Entry>();
    let previous: Entry | null = null;
    for (const entry of this.living) {
      const before = previous;
      previous = entry;
      if (entry.id === null) continue;
      const known = first.get(entry.id);
      if (repeatsIds) first.clear();
      if (!known || repeatsIds) first.set(entry.id, entry);
      if (!known || text(known) !== text(entry)) continue;
      // Of one that is mended and one that is whole, side by side, the whole one stays as it is.
      const isWhole = known === before && known.replacement !== undefined && entry.replacement === undefined;
      if (isWhole) first.set(entry.id, entry);
      const copy = isWhole ? known : entry;
      copy.replacement = null;
      copy.why = isWhole ? "removes a damaged copy of a record" : "removes the second copy of a record";
    }
  }

  /** An entry for a record that is added. */
  made(value: unknown, thread: string, grade: Grade, why: string): Entry {
    const understood = this.#format.understand(value);
    const units = understood?.units ?? [];
    return {
      ...{
        place: null,
        state: "intact",
        damage: [],
        kind: understood?.kind ?? "unknown",
        thread: understood?.thread ?? thread,
      },
      ...{ id: understood?.id ?? null, parent: understood?.parent ?? null, ...namesIn(units) },
      replacement: { value, grade, why },
    };
  }

  /** The changes of the file, in order. */
  edits(): Edit[] {
    const edits: Edit[] = [];
    let at = 0;
    /** Where additions go: behind the line before them. */
    const add = (offset: number, length: number, bytes: Uint8Array, grade: Grade, why: string): void => {
      const last = edits.at(-1);
      if (last && last.offset + last.length === offset && (length === 0 || last.length === 0)) {
        const both = Buffer.concat([last.bytes, bytes]);
        edits[edits.length - 1] = { ...last, length: last.length + length, bytes: both, why: `${last.why}; ${why}` };
      } else edits.push({ offset, length, bytes, grade, why });
    };
    for (const entry of this.entries) {
      const { place, replacement } = entry;
      const end = this.#ends.get(entry) ?? at;
      if (place === null) {
        // One that was added may have been left out again.
        if (replacement) add(at, 0, lineOf(replacement.value), replacement.grade, replacement.why);
      } else {
        const gap = this.#file.read(place.offset + place.length, end - place.offset - place.length);
        const isLast = end === this.#file.size;
        const isClean = gap.length === 1 ? gap[0] === 0x0a : gap.every((byte) => byte === 0x0a) && gap.length > 0;
        if (replacement === null)
          add(place.offset, end - place.offset, new Uint8Array(0), "unknown", entry.why ?? "removes what is no record");
        else if (replacement)
          add(place.offset, end - place.offset, lineOf(replacement.value), replacement.grade, replacement.why);
        else if (!isClean && !(isLast && gap.length === 0)) {
          const line = Buffer.concat([this.#file.read(place.offset, place.length), Buffer.from("\n")]);
          add(place.offset, end - place.offset, line, "intact", "puts the record on a line of its own");
        }
      }
      at = end;
    }
    const last = this.entries.findLast(({ place }) => place !== null);
    const isUnended =
      last?.place && last.replacement === undefined && last.place.offset + last.place.length === this.#file.size;
    if (edits.length > 0 && isUnended) {
      // What is added behind it must not stand on its line.
      const behind = edits.findIndex(({ offset }) => offset === this.#file.size);
      if (behind >= 0)
        edits[behind] = { ...edits[behind]!, bytes: Buffer.concat([Buffer.from("\n"), edits[behind]!.bytes]) };
    }
    return edits;
  }

  #entryOf(stretch: Stretch, thread: string): Entry {
    const { offset, length, line, state, damage } = stretch;
    // Half of a record stays half; one that lost a byte is whole apart from that.
    const isWhole = state === "partial" && damage.every((kind) => kind === "invalid-utf8");
    const value = isWhole ? withoutLostBytes(stretch.value) : stretch.value;
    const understood = value === undefined ? null : this.#format.understand(value);
    const entry: Entry = {
      ...{ place: { offset, length, line }, state, damage, kind: understood?.kind ?? "unknown" },
      ...{ thread: understood?.thread ?? thread, id: understood?.id ?? null, parent: understood?.parent ?? null },
      ...namesIn(understood?.units ?? []),
    };
    if (state === "recovered") {
      const isSame = damage.every((kind) => kind === "glued-records");
      // Its bytes are whole; only its line is not its own.
      if (!isSame) entry.replacement = { value, grade: "intact", why: `repairs the text: ${damage.join(", ")}` };
    } else if (state === "partial")
      entry.replacement = { value, grade: "unknown", why: `keeps what can be read: ${damage.join(", ")}` };
    else if (state === "unreadable") {
      entry.replacement = null;
      entry.why = `removes bytes without a record: ${damage.join(", ")}`;
    }
    return entry;
  }
}

function namesIn(units: readonly Unit[]): Pick<Entry, "calls" | "results" | "isSpeech" | "isPrompt"> {
  return {
    calls: units.flatMap((unit) => (unit.type === "call" ? [{ id: unit.id, name: unit.name }] : [])),
    results: units.flatMap((unit) => (unit.type === "result" ? [unit.call] : [])),
    isSpeech: units.some(({ type }) => type !== "title"),
    isPrompt: units.some(({ type }) => type === "user"),
  };
}

/** Names and ids without the marks of lost bytes, where that leaves a name; texts keep them. */
function withoutLostBytes(value: unknown): unknown {
  const clean = (text: string): string =>
    /^[\w.:/-]*\ufffd[\w.:/\ufffd-]*$/.test(text) ? text.replaceAll("\ufffd", "") : text;
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map(withoutLostBytes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [clean(key), withoutLostBytes(inner)]));
}

const lineOf = (value: unknown): Uint8Array => Buffer.from(`${JSON.stringify(value)}\n`);

/** An id that is the same each time the same session is repaired. */
export function madeUuid(...from: readonly string[]): string {
  const hex = createHash("sha256").update(from.join("\0")).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
