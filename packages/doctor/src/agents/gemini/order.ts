import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";

const IDS_MAX = 100_000;

/** What the order of the lines shows to be missing before a record. */
export type Gap =
  /** The message that this note of the time follows. */
  | "message"
  /** The snapshot that brings back what a resume took out: Gemini shows nothing of what was said before. */
  | "snapshot";

/**
 * Gemini CLI notes the time right behind each new message; and each resume takes everything out of the session, and
 * then puts it back, with a snapshot.
 */
export class LineOrder {
  readonly #said = new Set<string>();
  #isBehindNew = false;
  #resume: "no" | "begun" | "emptied" = "no";
  #isFirst = true;
  #lastNote: unknown = null;

  get ids(): ReadonlySet<string> {
    return this.#said;
  }

  /** What is missing right before this record. */
  next(kind: string, fields: Fields): Gap | null {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    if (kind === "facts") {
      this.#resume = isFirst ? "no" : "begun";
      this.#isBehindNew = false;
    } else if (kind === "snapshot") this.#snapshot(listIn(fieldsOf(fields["$set"])["messages"]));
    else if (kind === "$set") {
      const { lastUpdated, ...others } = fieldsOf(fields["$set"]);
      const isNote = lastUpdated !== undefined && Object.keys(others).length === 0;
      // The same note may stand there twice.
      const isLost = isNote && !this.#isBehindNew && lastUpdated !== this.#lastNote;
      if (isNote) this.#lastNote = lastUpdated;
      this.#isBehindNew = false;
      if (isLost) return "message";
    } else if (kind === "$rewindTo") this.#isBehindNew = false;
    else return this.#message(textIn(fields["id"]));
    return null;
  }

  /** What is missing at the end. */
  end(): Gap | null {
    return this.#resume === "emptied" ? "snapshot" : null;
  }

  /** Something that cannot be read may have been anything. */
  skip(): void {
    this.#isBehindNew = true;
  }

  #message(id: string | null): Gap | null {
    const isHidden = this.#resume === "emptied";
    this.#resume = "no";
    if (id !== null) {
      this.#isBehindNew = !this.#said.has(id);
      if (this.#said.size < IDS_MAX) this.#said.add(id);
    }
    return isHidden ? "snapshot" : null;
  }

  #snapshot(messages: readonly unknown[]): void {
    const spoken = messages.map(fieldsOf).filter((message) => !isContext(message));
    const ids = spoken.flatMap(({ id }) => textIn(id) ?? []);
    if (ids.some((id) => this.#said.has(id))) this.#resume = "no";
    else if (this.#resume === "begun" && this.#said.size > 0 && ids.length === 0) this.#resume = "emptied";
    for (const id of ids) if (this.#said.size < IDS_MAX) this.#said.add(id);
    this.#isBehindNew = false;
  }
}

/** What the program itself says first. */
export function isContext({ content }: Fields): boolean {
  return listIn(content).some((part) => /^\s*<session_context>/.test(textIn(fieldsOf(part)["text"]) ?? ""));
}
