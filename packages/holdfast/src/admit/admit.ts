import { defined } from "../defined.ts";
import type { Dialect, Metadata, Outcome } from "../dialects/dialect.ts";
import { quote } from "../dialects/shape.ts";
import { HoldfastError, isHoldfastError } from "../errors.ts";
import { snapshot, snapshotAround } from "../journal/lines/plain.ts";
import type { Json } from "../journal/record.ts";
import { redactJson, redactMessage } from "../redact/message.ts";
import type { Redactor } from "../redact/redactor.ts";
import { beginningOf } from "../text/well-formed.ts";
import { invalid } from "./refusals.ts";
import { assertSize, MESSAGE_BYTES_MAX, METADATA_BYTES_MAX } from "./size.ts";

/** A message in the form that the journal stores. The caller can no longer change it (R19). */
export interface StoredMessage {
  readonly stored: Json;
  readonly redacted: boolean;
  readonly role: ReturnType<Dialect<unknown>["role"]>;
}

/** A handle is an id, and where the answer is. */
const HANDLE_BYTES_MAX = 16 * 1024;
const WORDS_CHARS_MAX = 1024 * 1024;

/** Prepares everything for the journal: a snapshot, the dialect's check, its encoding, redaction. */
export class Admission<M> {
  readonly dialect: Dialect<M>;
  readonly redactor: Redactor | null;

  constructor(dialect: Dialect<M>, redactor: Redactor | null) {
    this.dialect = dialect;
    this.redactor = redactor;
  }

  /** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, RECORD_TOO_LARGE. `index`: its position in a given list. */
  message(message: M, index?: number): StoredMessage {
    try {
      const { copy, isPlain } = snapshotAround(message, "message");
      return this.#redacted(this.#encoded(copy, isPlain, message, index), copy);
    } catch (error) {
      throw asMessageError(asReadError("message", error), index);
    }
  }

  /** Like `message`, plus the content as given: before redaction, and with its own copy of any bytes. */
  held(message: M, index: number): { readonly content: M; readonly stored: StoredMessage } {
    return readable("message", index, () => {
      const { copy, isPlain } = snapshotAround(message, "message");
      const encoded = this.#encoded(copy, isPlain, message, index);
      const content = isPlain ? copy : this.decoded({ stored: encoded });
      return { content, stored: this.#redacted(encoded, copy) };
    });
  }

  #encoded(copy: M, isPlain: boolean, message: M, index: number | undefined): Json {
    const { dialect } = this;
    const why = dialect.check(copy);
    if (why !== null) throw unfitFor(dialect, why, message, index);
    if (isPlain && !dialect.encode) return copy as Json;
    return snapshot(dialect.encode ? dialect.encode(copy) : (copy as Json), "message");
  }

  #redacted(encoded: Json, copy: M): StoredMessage {
    const role = this.dialect.role(copy);
    if (!this.redactor) {
      assertSize("the message", "message", encoded, MESSAGE_BYTES_MAX);
      return { stored: encoded, redacted: false, role };
    }
    const { value, changed } = redactMessage(encoded, this.redactor);
    assertSize("the message", "message", value, MESSAGE_BYTES_MAX);
    return { stored: snapshot(value, "message"), redacted: changed, role };
  }

  /** Whether recording this message would give the recorded one. */
  same(recorded: M, message: StoredMessage): boolean {
    return this.dialect.same(recorded, this.decoded(message));
  }

  /** The message as it would be read back from the journal. */
  decoded({ stored }: Pick<StoredMessage, "stored">): M {
    const { dialect } = this;
    return dialect.decode ? dialect.decode(stored) : (stored as M);
  }

  /** An application's value. Throws RECORD_NOT_JSON. */
  json<T>(value: T, path: string): T {
    const copy = snapshot(value, path);
    return this.redactor ? snapshot(redactJson(copy as Json, this.redactor).value as T, path) : copy;
  }

  /** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON. */
  metadata(metadata: Metadata): Metadata {
    const copy: unknown = readable("metadata", undefined, () => this.json(metadata, "metadata"));
    if (typeof copy !== "object" || copy === null || Array.isArray(copy)) {
      throw unfit(`metadata must be an object, not ${found(metadata)}`);
    }
    assertSize("the metadata", "message", copy as Json, METADATA_BYTES_MAX);
    return copy as Metadata;
  }

  /** What an answer can be fetched by. Throws RECORD_INVALID, RECORD_NOT_JSON, RECORD_TOO_LARGE. */
  handle(handle: unknown): Json {
    if (handle == null) throw invalid("a handle is given as any value except null and undefined");
    const copy = snapshot(handle as Json, "handle");
    assertSize("the handle", "draft.accepted", copy, HANDLE_BYTES_MAX);
    if (this.redactor && redactJson(copy, this.redactor).changed) {
      throw invalid("the handle holds a credential, and nothing could be fetched by it once that is redacted");
    }
    return copy;
  }

  text(text: string): string {
    return this.redactor ? this.redactor(text) : text;
  }

  /**
   * How a turn ended. Every later epoch repeats it, so it has a limit, far above any sensible text. Never cut inside a
   * character.
   */
  words(text: string): string {
    const words = this.text(text);
    if (words.length <= WORDS_CHARS_MAX) return words;
    return `${beginningOf(words, WORDS_CHARS_MAX)}…`;
  }

  /** A value of any kind. Total: the tool has run, and that must be recorded whatever it returned. */
  value(value: unknown): { readonly value: Json | undefined; readonly redacted: boolean } {
    const json = jsonOf(value);
    if (json === undefined || !this.redactor) return { value: json, redacted: false };
    const { value: clean, changed } = redactJson(json, this.redactor);
    return { value: clean, redacted: changed };
  }

  /** A tool's outcome, as members of a `tool.ended`. */
  outcome(given: Outcome): { value?: Json; error?: string; redacted?: true } {
    const outcome = outcomeOf(given);
    if (outcome.error !== undefined) {
      const words = wordsOf(outcome.error);
      const error = this.text(words);
      return error === words ? { error } : { error, redacted: true };
    }
    const { value, redacted } = this.value(outcome.value);
    return defined({ value, redacted: redacted || undefined });
  }
}

/** Reads the outcome once. Total: whatever was given, the tool has run. */
function outcomeOf(given: Outcome): Outcome {
  try {
    const { value, error } = given;
    return error === undefined ? { value } : { error };
  } catch {
    return { error: "(an outcome that cannot be read)" };
  }
}

/** As JSON would carry it, or in words if JSON cannot. */
function jsonOf(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `(${value.byteLength} bytes)`;
  try {
    const text = JSON.stringify(value);
    if (text !== undefined) return JSON.parse(text) as Json;
  } catch {
    // A cycle, a BigInt, a throwing getter: described in words below.
  }
  try {
    return String(value);
  } catch {
    return "(a value that cannot be printed)";
  }
}

/** The text of an error of any kind. */
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

/** The journal reports records; a caller that appends a message needs to hear about the message. */
export function asMessageError(error: unknown, index?: number): unknown {
  if (!isHoldfastError(error, "RECORD_NOT_JSON")) return error;
  const path = String(error.facts["path"]).replace(/^message\.(?=message)/, "");
  const why = String(error.facts["why"]);
  const where = index === undefined ? path : `${path} of messages[${index}]`;
  const text =
    `The message was not recorded: at ${where}, ${why}. Nothing before it is affected. ` +
    "Convert the value, or give the session a dialect that encodes it.";
  return new HoldfastError("MESSAGE_NOT_JSON", text, { path, why, ...defined({ index }) }, error);
}

/** The value may be anything: a throwing proxy is refused like a Date. Throws RECORD_NOT_JSON. */
export function reading<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw asReadError(path, error);
  }
}

function asReadError(path: string, error: unknown): HoldfastError {
  if (isHoldfastError(error)) return error;
  const why = `it cannot be read (${wordsOf(error).slice(0, 200)})`;
  const message = `Nothing was recorded: at ${path}, ${why}. Nothing before it is affected. Pass plain values.`;
  return new HoldfastError("RECORD_NOT_JSON", message, { path, why }, error);
}

/** Like `reading`, for a message or its options. Throws MESSAGE_NOT_JSON. */
export function readable<T>(path: string, index: number | undefined, read: () => T): T {
  try {
    return reading(path, read);
  } catch (error) {
    throw asMessageError(error, index);
  }
}

export function unfit(why: string, facts: Record<string, Json> = {}): HoldfastError {
  const message = `The message was not recorded: ${why}. Nothing before it is affected.`;
  return new HoldfastError("MESSAGE_UNFIT", message, { why, ...facts });
}

function unfitFor<M>(dialect: Dialect<M>, why: string, message: M, index: number | undefined): HoldfastError {
  const what = found(message);
  const which = index === undefined ? "The message" : `messages[${index}]`;
  const text =
    `${which} was not recorded: it does not fit the dialect "${dialect.name}" (${why}); it is ${what}. Nothing before it is affected. ` +
    "Pass the message as the SDK makes it, or create the session with its dialect.";
  const facts = { dialect: dialect.name, why, found: what, ...defined({ index }) };
  return new HoldfastError("MESSAGE_UNFIT", text, facts);
}

/** A text that an application gives about an action. Total: a bad string must not stop a turn from being aborted. */
export function textIn(given: unknown, name: string): string | undefined {
  try {
    const text: unknown = (given as Record<string, unknown> | null | undefined)?.[name];
    return text === undefined || text === null ? undefined : String(text);
  } catch {
    return "(a text that cannot be read)";
  }
}

const NAMES_MAX = 8;

/** Describes a value without quoting it: it may be a secret, and errors are logged. */
export function found(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value !== "object") return `a ${typeof value}`;
  try {
    const names = Object.keys(value);
    const shown = names
      .slice(0, NAMES_MAX)
      .map((name) => quote(name))
      .join(", ");
    const members =
      names.length === 0 ? "without members" : `with the members ${shown}${names.length > NAMES_MAX ? ", …" : ""}`;
    const { constructor: of } = value;
    const isClass = typeof of === "function" && of !== Object && of.name !== "";
    return `an object ${isClass ? `of class ${of.name} ` : ""}${members}`;
  } catch {
    return "an object that cannot be read";
  }
}
