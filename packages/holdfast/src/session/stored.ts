import type { JournalRecord } from "../journal/record.ts";
import type { SessionRecord } from "./records.ts";

type Kind = SessionRecord["kind"];
type Type = "string" | "number" | "object" | "array" | "any";

/** The members without which a record of that kind means nothing. */
const REQUIRED: { readonly [K in Kind]: readonly (readonly [member: string, type: Type])[] } = {
  session: [],
  "turn.started": [
    ["turn", "number"],
    ["prompt", "string"],
  ],
  "turn.resumed": [
    ["turn", "number"],
    ["n", "number"],
  ],
  "turn.suspended": [
    ["turn", "number"],
    ["reason", "string"],
  ],
  "turn.ended": [
    ["turn", "number"],
    ["outcome", "string"],
  ],
  signal: [["signal", "string"]],
  message: [
    ["id", "string"],
    ["turn", "number"],
    ["step", "string"],
    ["message", "any"],
  ],
  draft: [
    ["id", "string"],
    ["turn", "number"],
    ["n", "number"],
  ],
  "tool.started": [
    ["turn", "number"],
    ["call", "string"],
    ["name", "string"],
  ],
  "tool.ended": [
    ["id", "string"],
    ["turn", "number"],
    ["call", "string"],
    ["name", "string"],
  ],
  patch: [
    ["id", "string"],
    ["metadata", "object"],
  ],
  edit: [
    ["id", "string"],
    ["ids", "array"],
    ["shown", "array"],
    ["reason", "string"],
  ],
  usage: [
    ["turn", "number"],
    ["usage", "object"],
  ],
  epoch: [
    ["reason", "string"],
    ["checkpoint", "object"],
  ],
  "queue.put": [
    ["id", "string"],
    ["prompt", "any"],
  ],
  "queue.take": [["id", "string"]],
  repair: [
    ["turn", "number"],
    ["entries", "array"],
  ],
  note: [
    ["name", "string"],
    ["value", "any"],
  ],
};

/** The record as one of a session's. Null: it is the journal's own, of a kind that is not known here, or not what its kind says. */
export function storedRecord(record: JournalRecord | SessionRecord): SessionRecord | null {
  if (!isKnownKind(record.kind)) return null;
  const members = record as { readonly [member: string]: unknown };
  for (const [name, type] of REQUIRED[record.kind]) if (!isOf(type, members[name])) return null;
  return record as SessionRecord;
}

export function isKnownKind(kind: string): kind is Kind {
  return Object.hasOwn(REQUIRED, kind);
}

function isOf(type: Type, value: unknown): boolean {
  if (type === "any") return value !== undefined;
  if (type === "array") return Array.isArray(value);
  // biome-ignore lint/suspicious/useValidTypeof: the types of the table are those of typeof.
  return typeof value === type && value !== null;
}
