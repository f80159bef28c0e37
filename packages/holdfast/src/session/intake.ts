import type { Dialect, Metadata, Outcome } from "../dialects/dialect.ts";
import { HoldfastError, isHoldfastError } from "../errors.ts";
import type { Json } from "../journal/record.ts";
import { redactJson, redactMessage } from "./redact/message.ts";
import type { Redactor } from "./redact/redactor.ts";

/** A message in the form that the journal keeps. */
export interface StoredMessage {
  readonly stored: Json;
  readonly redacted: boolean;
}

/** What everything passes on its way into the journal: the dialect's check, its encoding, redaction. */
export class Intake<M> {
  readonly dialect: Dialect<M>;
  readonly redactor: Redactor | null;

  constructor(dialect: Dialect<M>, redactor: Redactor | null) {
    this.dialect = dialect;
    this.redactor = redactor;
  }

  /** Throws MESSAGE_UNFIT. What JSON would change is found when it is encoded (MESSAGE_NOT_JSON). */
  message(message: M): StoredMessage {
    const { dialect, redactor } = this;
    const why = dialect.check(message);
    if (why !== null) {
      const text = `The message was not recorded: it does not fit the dialect "${dialect.name}" (${why}). Nothing before it is affected. Give the message as the SDK makes it, or create the session with its dialect.`;
      throw new HoldfastError("MESSAGE_UNFIT", text, { dialect: dialect.name, why });
    }
    const encoded = dialect.encode ? dialect.encode(message) : (message as Json);
    if (!redactor) return { stored: encoded, redacted: false };
    const { value, changed } = redactMessage(encoded, redactor);
    return { stored: value, redacted: changed };
  }

  /** Is the recorded message what would be recorded of this one? */
  same(recorded: M, { stored }: StoredMessage): boolean {
    const { dialect } = this;
    return dialect.same(recorded, dialect.decode ? dialect.decode(stored) : (stored as M));
  }

  /** A value of the application's own. */
  json(value: Json): Json {
    return this.redactor ? redactJson(value, this.redactor).value : value;
  }

  metadata<T extends Metadata | undefined>(metadata: T): T {
    return metadata === undefined ? metadata : (this.json(metadata as Json) as T);
  }

  text(text: string): string {
    return this.redactor ? this.redactor(text) : text;
  }

  /** A value of any kind. Total: a tool has run, and that must be recorded whatever it returned. */
  value(value: unknown): { readonly value: Json | undefined; readonly redacted: boolean } {
    const json = jsonOf(value);
    if (json === undefined || !this.redactor) return { value: json, redacted: false };
    const { value: clean, changed } = redactJson(json, this.redactor);
    return { value: clean, redacted: changed };
  }

  /** What a tool came to, as members of a `tool.ended`. */
  outcome(outcome: Outcome): { value?: Json; error?: string; redacted?: true } {
    if (outcome.error !== undefined) {
      const words = wordsOf(outcome.error);
      const error = this.text(words);
      return error === words ? { error } : { error, redacted: true };
    }
    const { value, redacted } = this.value(outcome.value);
    return { ...(value === undefined ? {} : { value }), ...(redacted ? { redacted } : {}) };
  }
}

/** As JSON would carry it; in words where it cannot. */
function jsonOf(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `(${value.byteLength} bytes)`;
  try {
    const text = JSON.stringify(value);
    if (text !== undefined) return JSON.parse(text) as Json;
  } catch {
    // A cycle, a BigInt, a getter that throws: said in words below.
  }
  try {
    return String(value);
  } catch {
    return "(a value that cannot be printed)";
  }
}

/** The words of an error, of whatever kind it is. */
export function wordsOf(error: unknown): string {
  if (typeof error === "string") return error;
  try {
    if (error instanceof Error) return String(error.message || error.name);
    const json = jsonOf(error);
    return typeof json === "string" ? json : (JSON.stringify(json) ?? "unknown");
  } catch {
    return "(an error that cannot be printed)";
  }
}

/** The journal speaks of records; whoever appends a message wants to hear of that. */
export function asMessageError(error: unknown): unknown {
  if (!isHoldfastError(error, "RECORD_NOT_JSON")) return error;
  const path = String(error.facts["path"]).replace(/^message\./, "");
  const why = String(error.facts["why"]);
  const text =
    `The message was not recorded: at ${path}, ${why}. Nothing before it is affected. ` +
    "Convert the value, or give the session a dialect that encodes it.";
  return new HoldfastError("MESSAGE_NOT_JSON", text, { path, why }, error);
}
