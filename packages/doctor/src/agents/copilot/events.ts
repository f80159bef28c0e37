import type { Grade } from "../../contract/plan.ts";
import { type Fields, fieldsOf } from "../../contract/shapes.ts";
import { type Entry, type LineEntries, madeUuid } from "../../mend/entries.ts";
import type { Twins } from "./twins.ts";

export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The events of a session that are being repaired: what they say, where some are missing, and how one is put there. */
export class Events {
  readonly lines: LineEntries;
  readonly twins: Twins;
  readonly lost: string[];
  /** Entries before which something was lost. */
  readonly #holes = new Set<Entry>();
  #isHoleAtEnd = false;

  constructor(lines: LineEntries, twins: Twins, lost: string[]) {
    this.lines = lines;
    this.twins = twins;
    this.lost = lost;
  }

  get hasHoles(): boolean {
    return this.#holes.size > 0 || this.#isHoleAtEnd;
  }

  /** There were events, and none is left. */
  markEnd(): void {
    this.#isHoleAtEnd = true;
  }

  /** The events of a conversation that are still to be written. */
  thread(name: string): Entry[] {
    return this.lines.living.filter(({ thread }) => thread === name);
  }

  fields(entry: Entry): Fields {
    return fieldsOf(this.lines.valueOf(entry));
  }

  data(entry: Entry): Fields {
    return fieldsOf(this.fields(entry)["data"]);
  }

  /** Whether something was lost right before this event; of null, behind the last one. */
  isHole(entry: Entry | null): boolean {
    return entry === null ? this.#isHoleAtEnd : this.#holes.has(entry);
  }

  /** Puts an event before another one, or behind it. It takes the id that the next one names, if that is missing. */
  add(where: "before" | "behind", at: Entry, type: string, data: Fields, grade: Grade, why: string): Entry {
    const all = this.lines.living;
    const next = where === "before" ? at : all[all.indexOf(at) + 1];
    const isNamed =
      next?.parent && UUID.test(next.parent) && !all.some(({ id }) => id === next.parent) && next.thread === at.thread;
    const { timestamp, agentId } = this.fields(at);
    const id = isNamed ? next.parent! : madeUuid(type, String(at.id), JSON.stringify(data));
    const value = { type, data, id, timestamp, parentId: null, ...(agentId === undefined ? {} : { agentId }) };
    const made = this.lines.made(value, at.thread, grade, why);
    this.lines.insert(where, new Map([[at, [made]]]));
    return made;
  }

  change(entry: Entry, data: Fields, grade: Grade, why: string): void {
    this.replace(entry, { ...this.fields(entry), data }, grade, why);
  }

  replace(entry: Entry, value: Fields, grade: Grade, why: string): void {
    entry.replacement = { value, grade, why };
    const { id, parent, thread, calls, results, isPrompt, isSpeech } = this.lines.made(value, "main", grade, why);
    Object.assign(entry, { id, parent, thread, calls, results, isPrompt, isSpeech });
  }

  remove(entry: Entry, why: string): void {
    entry.replacement = null;
    entry.why = why;
  }

  findHoles(): void {
    const ids = new Set(this.lines.living.map(({ id }) => id));
    let isLost = false;
    for (const entry of this.lines.entries) {
      if (entry.replacement === null) {
        isLost ||= entry.state === "partial" || entry.state === "unreadable";
        continue;
      }
      const isUnlinked = entry.parent !== null && !ids.has(entry.parent) && !entry.kind.startsWith("model.");
      if (isLost || isUnlinked) this.#holes.add(entry);
      isLost = false;
    }
    this.#isHoleAtEnd ||= isLost;
  }
}
