import type { Dialect } from "../dialects/dialect.ts";
import type { JournalRecord, Json } from "../journal/record.ts";
import type { TextChange, TextMark } from "../journal/texts.ts";

// biome-ignore lint/suspicious/noExplicitAny: the application defines the message type.
export type DialectNamed = (name: string) => Dialect<any> | null;

/**
 * How much of a message is indexed: text beyond this, in a log or file of many megabytes, is not found and delays
 * nobody.
 */
export const TEXT_CHARS_MAX = 8_000_000;

/**
 * Reads the records of one session, in order. Titles and what the user and the model said can be found; tool traffic,
 * reasoning, instructions to the model and messages synthesized to repair a conversation cannot. Messages that an epoch
 * dropped can still be found.
 */
export class TextReader {
  /** The dialect name the session gives. */
  dialect: string | null;
  /** There was a message whose dialect is unknown here. */
  blind: boolean;
  /** There was a message of which only the start can be found. */
  cut: boolean;
  readonly #dialectNamed: DialectNamed;

  constructor(dialectNamed: DialectNamed, before?: Pick<TextMark, "dialect" | "blind" | "cut">) {
    this.#dialectNamed = dialectNamed;
    this.dialect = before?.dialect ?? null;
    this.blind = before?.blind ?? false;
    this.cut = before?.cut ?? false;
  }

  read(record: JournalRecord): TextChange | null {
    switch (record.kind) {
      case "session":
        if (typeof record["dialect"] === "string") this.dialect = record["dialect"];
        return typeof record["title"] === "string" ? { kind: "title", title: this.#bounded(record["title"]) } : null;
      case "epoch": {
        const dialect = memberOf(record["checkpoint"], "dialect");
        if (typeof dialect === "string") this.dialect = dialect;
        return null;
      }
      case "message":
        return this.#message(record);
      case "patch":
        return hidingOf(record);
      default:
        return null;
    }
  }

  #message(record: JournalRecord): TextChange | null {
    const { seq, id, step, metadata, carried, synthetic } = record;
    if (typeof id !== "string" || id === "") return null;
    return {
      kind: "message",
      id,
      seq,
      step: typeof step === "string" ? step : id,
      text: synthetic === undefined ? this.#bounded(this.#textOf(record["message"] as Json)) : "",
      hidden: memberOf(metadata, "hiddenFromUser") === true,
      carried: carried === true,
    };
  }

  #bounded(text: string): string {
    if (text.length <= TEXT_CHARS_MAX) return text;
    this.cut = true;
    return text.slice(0, TEXT_CHARS_MAX);
  }

  #textOf(stored: Json): string {
    const dialect = this.dialect === null ? null : this.#dialectNamed(this.dialect);
    if (!dialect) {
      this.blind = true;
      return "";
    }
    try {
      const message: unknown = dialect.decode ? dialect.decode(stored) : stored;
      const text: unknown = dialect.role(message) === "system" ? "" : dialect.text(message);
      return typeof text === "string" ? text : "";
    } catch {
      // Dialects are total (dialect.ts). If an application's own dialect is not, only this message cannot be found.
      return "";
    }
  }
}

/** A JSON merge patch that does not mention hiding changes nothing; one that removes it shows the message again. */
function hidingOf({ id, metadata }: JournalRecord): TextChange | null {
  const hidden = memberOf(metadata, "hiddenFromUser");
  return typeof id !== "string" || hidden === undefined ? null : { kind: "hiding", id, hidden: hidden === true };
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
