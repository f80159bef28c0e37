import type { ReadItem } from "../../contract/agent.ts";
import { problem } from "../../contract/problem.ts";
import type { Place, SessionRecord } from "../../contract/record.ts";
import { fieldsOf } from "../../contract/shapes.ts";
import type { SourceFile } from "../../files/source-file.ts";
import type { Projection } from "./indexes.ts";

const LINE_FEED = 0x0a;

interface Gap {
  from: number;
  to: number;
  readonly place: Place;
  /** Lines that could not be read, each of which may have had one of the numbers. */
  readonly unreadable: number;
}

const GAPS_MAX = 1_000;

/**
 * Follows the numbers of a rollout. A record takes the next one; a line that cannot be read may have had one. What is
 * missing beyond that is lost, and there Codex stops to follow the rollout, too.
 */
export class RolloutNumbers {
  readonly #gaps: Gap[] = [];
  #next: number | null = null;
  #unreadable = 0;
  #isFirst = true;

  add(record: SessionRecord): void {
    if (this.#isFirst && record.value !== undefined) this.#next = firstNumber(record);
    this.#isFirst = false;
    const { sequence, state, place } = record;
    if (sequence === null || state === "partial") {
      // A run of NUL may have been any number of lines.
      this.#unreadable += record.bytes.length === 0 ? Number.POSITIVE_INFINITY : 1;
      return;
    }
    const next = this.#next ?? sequence;
    if (sequence < next) this.#fill(sequence);
    else if (sequence > next && this.#gaps.length < GAPS_MAX)
      this.#gaps.push({ from: next, to: sequence, place, unreadable: this.#unreadable });
    this.#unreadable = 0;
    this.#next = Math.max(sequence + 1, next);
  }

  *end(): Generator<ReadItem> {
    for (const { from, to, place, unreadable } of this.#gaps) {
      const missing = to - from;
      if (missing <= unreadable) continue;
      const detail = missing === 1 ? `number ${from}` : `numbers ${from} to ${to - 1}`;
      yield { type: "problem", problem: problem("lost-record", place, { detail, ...LOST }) };
    }
  }

  /** A record that stands behind its place. */
  #fill(sequence: number): void {
    const gap = this.#gaps.findLast(({ from, to }) => from <= sequence && sequence < to);
    if (!gap) return;
    if (sequence + 1 < gap.to && sequence > gap.from) this.#gaps.push({ ...gap, from: sequence + 1, unreadable: 0 });
    if (sequence === gap.from) gap.from++;
    else gap.to = sequence;
  }
}

const LOST = {
  means: "Records are missing before this one. Codex no longer follows the session from here on.",
  fix: "Restores what is readable in events and in the index, and numbers the records anew.",
};

/** A fork begins where the rollout that it continues ended. */
function firstNumber({ value, sequence }: SessionRecord): number | null {
  const meta = fieldsOf(fieldsOf(value)["payload"]);
  const start = fieldsOf(meta["history_base"])["end_ordinal_exclusive"];
  return typeof start === "number" ? start : sequence;
}

const SHRUNK = {
  means: "The file is shorter than when Codex read it last.",
  fix: "Brings back what Codex's index still has, and has Codex read the session again.",
};

/** Compares the place up to which Codex has projected the rollout with what is there. */
export class ProjectionCursor {
  readonly #projection: Projection;
  readonly #file: SourceFile;
  /** Of the first record that is not projected yet. */
  #following: number | null | undefined;
  #last: number | null = null;

  constructor(projection: Projection, file: SourceFile) {
    this.#projection = projection;
    this.#file = file;
  }

  add({ place, sequence }: SessionRecord): void {
    if (this.#following === undefined && (place.offset ?? 0) >= this.#projection.offset) this.#following = sequence;
    if (this.#following === undefined) this.#last = sequence;
  }

  *end(): Generator<ReadItem> {
    const { offset, ordinal, place } = this.#projection;
    const { size } = this.#file;
    if (offset > size) {
      const file = { file: this.#file.path, line: null, offset: size };
      yield {
        type: "problem",
        problem: problem("shrunk-file", file, { detail: `${offset} bytes before, ${size} now`, ...SHRUNK }),
      };
      return;
    }
    const isAtLine = offset === 0 || this.#file.read(offset - 1, 1)[0] === LINE_FEED;
    const expected = this.#following === undefined ? (this.#last === null ? null : this.#last + 1) : this.#following;
    if (isAtLine && (offset === 0 || expected === null || expected === ordinal)) return;
    const detail = `byte ${offset}, number ${ordinal}`;
    yield { type: "problem", problem: problem("index-wedged", place, { detail }) };
  }
}
