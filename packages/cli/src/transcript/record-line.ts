import type { Dialect, JournalRecord } from "holdfast";
import type { Paint } from "../terminal/colour.ts";
import { plainLine } from "../terminal/plain.ts";
import { fit } from "../terminal/width.ts";

/** Enough for any line; the rest is not read. */
const CHARACTERS_MAX = 2000;

export interface RecordLineOptions {
  readonly dialect: Dialect<unknown> | null;
  readonly columns: number | undefined;
  readonly paint: Paint;
}

/**
 * One line for people about a journal record. Records of an unknown kind and damaged ones are shown too.
 */
export function recordLine(record: JournalRecord, { dialect, columns, paint }: RecordLineOptions): string {
  const head = `${plainLine(record.at).slice(11, 23)} ${String(record.seq).padStart(5)} `;
  const kind = plainLine(record.kind).slice(0, 40);
  const rest = plainLine(wordsOf(record, dialect).slice(0, CHARACTERS_MAX));
  const room = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(8, columns - head.length - kind.length - 2);
  return `${paint("faint", head)} ${paint("name", kind)} ${room === Number.POSITIVE_INFINITY ? rest : fit(rest, room)}`.trimEnd();
}

function wordsOf(record: JournalRecord, dialect: Dialect<unknown> | null): string {
  const text = (member: string): string => {
    const value = record[member];
    return value === undefined
      ? ""
      : typeof value === "string"
        ? value
        : (JSON.stringify(value) ?? "").slice(0, CHARACTERS_MAX);
  };
  switch (record.kind) {
    case "message":
      return messageWords(record, dialect);
    case "queue.put":
      return describeSaid(record["prompt"], dialect)?.text ?? text("prompt");
    case "draft":
      return record["discarded"] === undefined ? describeDraft(record["parts"]) : `discarded: ${text("discarded")}`;
    case "tool.started":
      return `${text("name")} ${text("call")} ${text("input")}`;
    case "tool.ended":
      return `${text("name")} ${text("call")} ${record["error"] === undefined ? text("value") : `failed: ${text("error")}`}`;
    case "turn.started":
    case "turn.resumed":
      return text("turn");
    case "turn.claimed":
      return `${text("turn")} try ${text("n")}`;
    case "turn.suspended":
      return `${text("turn")} ${text("reason")}${record["until"] === undefined ? "" : ` until ${text("until")}`}`;
    case "turn.ended":
      return [text("turn"), text("outcome"), text("by"), text("reason"), text("error")]
        .filter((one) => one !== "")
        .join(" ");
    case "signal":
      return text("signal");
    case "session":
      return text("title");
    case "epoch":
      return `${text("reason")}, ${text("carried")} messages carried`;
    case "usage":
      return text("usage");
    case "note":
      return `${text("name")} ${text("value")}`;
    default: {
      const {
        seq: _seq,
        at: _at,
        kind: _kind,
        crc: _crc,
        synced: _synced,
        summary: _summary,
        unit: _unit,
        key: _key,
        ...own
      } = record;
      return JSON.stringify(own).slice(0, CHARACTERS_MAX);
    }
  }
}

function messageWords(record: JournalRecord, dialect: Dialect<unknown> | null): string {
  const said = describeSaid(record["message"], dialect);
  if (!said) return JSON.stringify(record["message"] ?? null).slice(0, CHARACTERS_MAX);
  const { role, text, calls, results } = said;
  const parts = [text.slice(0, CHARACTERS_MAX)];
  for (const { name, input } of calls) parts.push(`[${name} ${(JSON.stringify(input) ?? "").slice(0, 200)}]`);
  if (text === "" && results > 0) parts.push(results === 1 ? "one result" : `${results} results`);
  return `${record["carried"] === true ? "(carried) " : ""}${role}: ${parts.filter((part) => part !== "").join(" ")}`;
}

function describeSaid(stored: unknown, dialect: Dialect<unknown> | null) {
  if (!dialect || stored === undefined) return null;
  const message = dialect.decode ? dialect.decode(stored as never) : stored;
  return {
    role: dialect.role(message),
    text: dialect.text(message),
    calls: dialect.calls(message),
    results: dialect.results(message).length,
  };
}

function describeDraft(parts: unknown): string {
  if (!Array.isArray(parts)) return "";
  return parts
    .map(
      (part: Record<string, unknown> | null) =>
        [part?.["text"], part?.["reasoning"], part?.["input"]].find((one) => typeof one === "string") ?? "",
    )
    .join("");
}
