import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";
import { ANTHROPIC } from "../../document/anthropic.ts";
import type { DocumentEntry } from "../../document/mend-document.ts";
import { change, completeMessage } from "../../mend/messages.ts";
import { type TwinMessage, taskFormat } from "./format.ts";

const BEGINNING_MIN = 8;

/** Where bytes of a conversation were lost, and what another place has there. */
export class Gaps {
  readonly #entries: DocumentEntry[];
  readonly #twins: readonly TwinMessage[];
  readonly #lost: string[];
  readonly #made: (message: Fields, at: number) => Fields;
  readonly #cut: ReadonlySet<DocumentEntry>;

  constructor(
    entries: DocumentEntry[],
    twins: readonly TwinMessage[],
    lost: string[],
    made: (message: Fields, at: number) => Fields,
  ) {
    this.#entries = entries;
    this.#twins = twins;
    this.#lost = lost;
    this.#made = made;
    this.#cut = new Set(entries.filter(isCut));
  }

  /** Messages whose end is lost. */
  complete(): void {
    for (const entry of this.#cut) if (typeof fieldsOf(entry.value)["role"] !== "string") removeFragment(entry);
    for (const [entry, number] of this.#numbers()) {
      if (!this.#cut.has(entry)) continue;
      const twin = this.#twins[number];
      const blocks = ANTHROPIC.blocksOf(fieldsOf(entry.value));
      const more = twin ? blocksBehind(blocks, twin) : null;
      if (more) {
        this.#lost.push(...lostOf([twin!]));
        const value = ANTHROPIC.withBlocks(fieldsOf(entry.value), [...blocks.slice(0, -1), ...more]);
        change(entry, value, "brought back", "brings back the end of a message");
        continue;
      }
      const kept = completeMessage(entry.value, ANTHROPIC, (beginning) => this.#restOf(beginning));
      if (kept === null) {
        removeFragment(entry);
        continue;
      }
      if (!kept.isWhole) this.#lost.push("The end of a message is lost.");
      const [grade, why] = kept.isWhole
        ? (["brought back", "brings back the end of a message"] as const)
        : (["unknown", "marks where a message ends"] as const);
      change(entry, kept.value, grade, why);
    }
  }

  /** Messages of which nothing is left. */
  insert(isBeginningLost: boolean): void {
    const living = [...this.#numbers()];
    for (let at = living.length; at >= 0; at--) {
      const [before, after] = [living[at - 1]?.[0], living[at]?.[0]];
      const from = before ? this.#entries.indexOf(before) + 1 : 0;
      const to = after ? this.#entries.indexOf(after) : this.#entries.length;
      const isGap =
        this.#entries.slice(from, to).some(({ isRemoved, grade }) => isRemoved && grade === "unknown") ||
        (before ? isHoled(before) : isBeginningLost);
      const missing = isGap ? this.#missing(living, at) : [];
      this.#lost.push(...lostOf(missing.map(([, twin]) => twin)));
      const added = missing.map(([index, twin]): DocumentEntry => {
        const value = this.#made(messageOf(twin), index);
        return { piece: null, value, grade: "brought back", why: "brings back a message from where Cline repeats it" };
      });
      this.#entries.splice(to, 0, ...added);
    }
  }

  /** The twins that belong before the message at a place: messages without a twin of their own stand for one each. */
  #missing(living: readonly (readonly [DocumentEntry, number])[], at: number): [number, TwinMessage][] {
    let [first, last] = [at - 1, at];
    while (first >= 0 && living[first]![1] < 0) first--;
    while (last < living.length && living[last]![1] < 0) last++;
    const from = (living[first]?.[1] ?? -1) + at - first;
    const to = (living[last]?.[1] ?? this.#twins.length) - (last - at);
    const stands = (index: number, twin: number): boolean =>
      this.#twins[twin]?.role === fieldsOf(living[index]![0].value)["role"];
    for (let index = first + 1; index < at; index++)
      if (!stands(index, (living[first]?.[1] ?? -1) + index - first)) return [];
    for (let index = at; index < last; index++) if (!stands(index, to + index - at)) return [];
    return [...this.#twins.entries()].slice(from, Math.max(from, to));
  }

  /** Each message, and which twin it has, in the order of both; -1 if it has none. */
  #numbers(): Map<DocumentEntry, number> {
    let last = -1;
    const living = this.#entries.filter(
      ({ isRemoved, value }) => !isRemoved && (fieldsOf(value)["role"] ?? null) !== null,
    );
    return new Map(
      living.map((entry) => {
        const at = this.#twins.findIndex((twin, index) => index > last && isSame(entry.value, twin));
        if (at >= 0) last = at;
        return [entry, at];
      }),
    );
  }

  /** The text that begins like this one; null if there is none, or more than one. */
  #restOf(beginning: string): string | null {
    const start = beginning.trimStart();
    if (start.trim().length < BEGINNING_MIN) return null;
    const matches = new Set(this.#twins.flatMap(({ texts }) => texts.filter((text) => text.startsWith(start))));
    return matches.size === 1 ? [...matches][0]! : null;
  }
}

function removeFragment(entry: DocumentEntry): void {
  entry.isRemoved = true;
  entry.why = "removes a fragment without readable text";
}

export const lostOf = (twins: readonly TwinMessage[]): string[] =>
  twins.some(({ isWhole }) => !isWhole) ? ["Some calls came back without their input, or as text only."] : [];

/** A message of a twin, without what it does not have. */
export function messageOf({ message }: TwinMessage): Fields {
  return ANTHROPIC.withBlocks(message, ANTHROPIC.blocksOf(message).filter(isThere));
}

const isThere = (block: unknown): boolean => Object.keys(fieldsOf(block)).length > 1;

/** Bytes were lost in it: it may have swallowed the beginning of the next one, too. */
const isHoled = ({ piece }: DocumentEntry): boolean =>
  piece?.state === "partial" && piece.damage.some((kind) => kind === "nul-run" || kind === "torn-record");

/** Half of a message; a hole inside of a string shows where it is. */
function isCut({ piece, isRemoved, value }: DocumentEntry): boolean {
  if (isRemoved || piece?.state !== "partial") return false;
  const endsWhole = taskFormat.isRecord(value) && Object.keys(fieldsOf(value)).at(-1) !== "content";
  return !endsWhole;
}

/** What stands in the twin from the last of these blocks on; null if it is not the same message. */
function blocksBehind(blocks: readonly unknown[], { message }: TwinMessage): unknown[] | null {
  const others = ANTHROPIC.blocksOf(message);
  const typeOf = (block: unknown): unknown => fieldsOf(block)["type"];
  const isAligned = blocks.every((block, at) => typeOf(block) === typeOf(others[at]));
  if (!isAligned || blocks.length === 0) return null;
  const text = ANTHROPIC.textOf(blocks.at(-1));
  const rest = others.slice(blocks.length - 1);
  if (text !== null && !ANTHROPIC.textOf(rest[0])?.startsWith(text.trim().replace(/\ufffd.*$/s, ""))) return null;
  return rest.filter(isThere);
}

function isSame(value: unknown, { role, texts, calls }: TwinMessage): boolean {
  const message = fieldsOf(value);
  if (message["role"] !== role) return false;
  const blocks = ANTHROPIC.blocksOf(message);
  const ids = blocks.flatMap((block) => ANTHROPIC.callOf(block)?.id ?? ANTHROPIC.resultOf(block)?.call ?? []);
  if (ids.length > 0 && calls.length > 0) return ids[0] === calls[0];
  const said = blocks.flatMap((block) => textIn(fieldsOf(block)["text"]) ?? []).map((text) => text.trim());
  const first = said.find((text) => text !== "");
  return first !== undefined && texts.some((text) => text.includes(first));
}
