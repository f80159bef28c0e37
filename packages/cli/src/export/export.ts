import type { DialectName, Reading, Store } from "holdfast";
import { listedTitle } from "../store/session-id.ts";
import { nullIfUnreadable, sumUsage, usageBelow, usageOf } from "../store/usage.ts";
import { dialectNamed } from "../transcript/known-dialects.ts";
import { shapeOf, shapesOf } from "../transcript/shape.ts";
import { entryOf, toDialect } from "./dialects/to-dialect.ts";
import { documentOf } from "./document.ts";
import type { Format } from "./format.ts";
import { redactDeep } from "./redact.ts";

export interface ExportOptions {
  readonly format: Format;
  /** Replaces credentials in all texts. */
  readonly redact?: boolean;
}

/**
 * A session in a format, in pieces. Reads without the lease, so its writer is not disturbed (C16).
 * Throws SESSION_NOT_FOUND, DIALECT_UNKNOWN, FORMAT_NEWER.
 */
export async function* exportSession(
  store: Store,
  id: string,
  { format, redact = false }: ExportOptions,
): AsyncGenerator<string, void, undefined> {
  if (format === "jsonl") {
    yield* journalLines(store, id, redact);
    return;
  }
  const reading = await store.read(id);
  if (format === "markdown" || format === "html") {
    // The list may fail because of another session; export this one anyway.
    const usage = sumUsage([usageOf(reading), ...((await nullIfUnreadable(usageBelow(store, id)))?.values() ?? [])]);
    const listed = reading.attributes.title || ((await nullIfUnreadable(listedTitle(store, id))) ?? "");
    const title = redact ? wholeWords(listed) : listed;
    const titled = { ...reading, attributes: { ...reading.attributes, title } };
    const document = documentOf(titled, new Date().toISOString(), usage);
    const { markdownOf } = format === "markdown" ? await import("./markdown.ts") : { markdownOf: null };
    const write = markdownOf ?? (await import("./html.ts")).htmlOf;
    yield* write(redact ? redactDeep(document) : document);
    return;
  }
  yield* messageLines(reading, format === "messages" ? null : format, redact);
}

/**
 * A prompt used as a title is cut, and the rest of a secret in it no longer looks like one, so the word that was cut is
 * removed as well. The title of a fork goes on after it.
 */
export function wholeWords(title: string): string {
  return title.replaceAll(/(?<!\S)\S*…(?!\S)/g, "…");
}

/**
 * Every record of the journal, as it is, up to its current end. A redacted record has no checksum.
 */
async function* journalLines(store: Store, id: string, redact: boolean): AsyncGenerator<string, void, undefined> {
  for await (const record of store.history(id)) {
    if (!redact) {
      yield `${JSON.stringify(record)}\n`;
      continue;
    }
    const { crc, ...rest } = record;
    const safe = redactDeep(withWholeTitle(rest.kind === "draft" ? withoutPieces(rest) : rest));
    yield `${JSON.stringify(safe === rest ? record : safe)}\n`;
  }
}

/**
 * A streamed secret is in pieces, none of which looks like one, so a draft's texts are removed: the finished message
 * has them.
 */
function withoutPieces<T extends { readonly [member: string]: unknown }>(draft: T): T {
  const parts = shapesOf(draft["parts"]).map((part) => {
    const said = ["text", "reasoning", "input"].filter((name) => typeof part[name] === "string");
    return { ...part, ...Object.fromEntries(said.map((name) => [name, "[redacted:draft]"])) };
  });
  return parts.length > 0 ? { ...draft, parts } : draft;
}

/** Some records carry the session's list row, and a fork gets its title from it. */
function withWholeTitle<T extends { readonly [member: string]: unknown }>(record: T): T {
  const row = shapeOf(record["summary"]);
  const summary = row && wholeIn(row);
  const own = record["kind"] === "session" ? wholeIn(record) : record;
  return summary === row ? own : { ...own, summary };
}

function wholeIn<T extends { readonly [member: string]: unknown }>(row: T): T {
  const said = (["title", "prompt"] as const).flatMap((name) => {
    const text = row[name];
    return typeof text === "string" && text !== wholeWords(text) ? [[name, wholeWords(text)]] : [];
  });
  return said.length > 0 ? { ...row, ...Object.fromEntries(said) } : row;
}

/** A JSON array, one message per line. */
function* messageLines(reading: Reading<unknown>, name: DialectName | null, redact: boolean): Generator<string> {
  const own = reading.attributes.dialect;
  const asked = name === null || name === own ? reading.messages : toDialect(reading, name);
  const messages = redact ? redactedMessages(asked, name ?? own) : asked;
  let before = "[\n";
  for (const message of messages) {
    yield before + JSON.stringify(plainJson(message));
    before = ",\n";
  }
  yield before === "[\n" ? "[]\n" : "\n]\n";
}

/**
 * Signed reasoning after a changed text is left out, so that the provider still accepts the rest (R1).
 */
export function redactedMessages(messages: readonly unknown[], name: string): readonly unknown[] {
  const safe = redactDeep(messages);
  const first = messages.findIndex((message, index) => safe[index] !== message);
  const dialect = dialectNamed(name);
  if (first < 0 || !dialect) return safe;
  const entries = safe.map((message, index) => entryOf(message, index));
  const next = dialect.role(safe.at(-1)) === "assistant" ? "prompt" : "model";
  return dialect.arrange(entries, { changedAt: null, redactedAt: `${first}`, next });
}

/** Bytes as base64 and URLs as text, which the SDKs accept too. */
function plainJson(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof URL) return value.href;
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (ArrayBuffer.isView(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  if (Array.isArray(value)) return value.map(plainJson);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainJson(member)]));
}
