import { type Problem, problem } from "../contract/problem.ts";
import type { Place, SessionRecord } from "../contract/record.ts";
import { hashOf, IdTable } from "./id-table.ts";

const DOUBLES_MAX = 1_000;

/** The ids of the records of one conversation: which are there twice, and which are named but missing. */
export class ThreadIds {
  readonly #bytesAt: (place: Place, length: number) => Uint8Array;
  readonly #numbers = new IdTable();
  readonly #files: string[] = [];
  /** By the number of the record: its offset, its length and its file. */
  #offsets = new Float64Array(1024);
  #lengths = new Float64Array(1024);
  #fileNumbers = new Int32Array(1024);
  /** By the hash of a parent that has not come yet: the first record that names it. */
  readonly #awaited = new Map<number, Place>();
  readonly #doubles: Problem[] = [];
  #doublesCount = 0;
  /** Records that came behind the first doubled one, and are new. */
  #newBehindDouble = 0;

  constructor(bytesAt: (place: Place, length: number) => Uint8Array) {
    this.#bytesAt = bytesAt;
  }

  /** `hash`: of the id, here and below. */
  has(hash: number): boolean {
    return this.#numbers.getHash(hash) !== undefined;
  }

  add({ place, length }: SessionRecord, hash: number): void {
    const number = this.#numbers.size;
    this.#numbers.setHash(hash, number);
    this.#awaited.delete(hash);
    if (this.#doublesCount > 0) this.#newBehindDouble++;
    if (number === this.#offsets.length) {
      this.#offsets = grown(this.#offsets, new Float64Array(number * 2));
      this.#lengths = grown(this.#lengths, new Float64Array(number * 2));
      this.#fileNumbers = grown(this.#fileNumbers, new Int32Array(number * 2));
    }
    let file = this.#files.lastIndexOf(place.file);
    if (file < 0) file = this.#files.push(place.file) - 1;
    this.#offsets[number] = place.offset ?? -1;
    this.#lengths[number] = length;
    this.#fileNumbers[number] = file;
  }

  /** A record whose id is known already; a problem if it is another one. */
  addAgain({ id, place, bytes, length }: SessionRecord, hash: number): Problem | null {
    const number = this.#numbers.getHash(hash)!;
    const offset = this.#offsets[number]!;
    const first = { file: this.#files[this.#fileNumbers[number]!]!, line: null, offset };
    const isSame = offset >= 0 && isSameRecord(this.#bytesAt(first, this.#lengths[number]!), bytes.subarray(0, length));
    if (!isSame) return problem("doubled-id", place, { detail: id! });
    this.#doublesCount++;
    if (this.#doubles.length < DOUBLES_MAX) this.#doubles.push(problem("doubled-record", place, { detail: id! }));
    return null;
  }

  follow(parent: string, place: Place): void {
    const hash = hashOf(parent);
    if (this.#numbers.getHash(hash) === undefined && !this.#awaited.has(hash)) this.#awaited.set(hash, place);
  }

  *end(): Generator<Problem> {
    const isDoubledFile = this.#doublesCount > 1 && this.#doublesCount >= this.#numbers.size - this.#newBehindDouble;
    if (isDoubledFile && this.#newBehindDouble === 0)
      yield problem("doubled-file", this.#doubles[0]!.place, { detail: `${this.#doublesCount} records` });
    else yield* this.#doubles;
    for (const place of this.#awaited.values()) yield problem("lost-record", place);
  }
}

function grown<T extends Float64Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** Their text may differ: one may have been written over two lines. */
function isSameRecord(one: Uint8Array, other: Uint8Array): boolean {
  if (Buffer.compare(one, other) === 0) return true;
  try {
    const [a, b] = [one, other].map((bytes) => JSON.stringify(JSON.parse(Buffer.from(bytes).toString("utf8"))));
    return a === b;
  } catch {
    return false;
  }
}
