import { dialects, type Entry, type JournalRecord } from "holdfast";
import type { Item } from "../transcript/item.ts";
import { itemsOf } from "../transcript/items.ts";

const DIALECT = "ai-sdk";

/** What a journal holds over all its epochs, in the form in which the agent acknowledged it. */
export interface JournalContent {
  readonly items: ReadonlyMap<string, Item>;
  /** The number of starts, by call. */
  readonly starts: ReadonlyMap<string, number>;
  /** Calls recorded as safe to run twice. */
  readonly safe: ReadonlySet<string>;
  /** Results by call. A placeholder for an unknown result does not count. */
  readonly results: ReadonlyMap<string, { readonly output: string; readonly failed: boolean }>;
  readonly compactions: number;
  readonly completed: boolean;
}

/** Takes the records of `store.history`. Pure. */
export function recordedIn(records: readonly JournalRecord[]): JournalContent {
  const starts = new Map<string, number>();
  const safe = new Set<string>();
  let compactions = 0;
  let completed = false;
  for (const record of records) {
    const { kind } = record;
    if (kind === "tool.started") {
      const call = String(record["call"]);
      starts.set(call, (starts.get(call) ?? 0) + 1);
      if (record["replay"] === "safe") safe.add(call);
    }
    if (kind === "epoch" && record["reason"] === "compaction") compactions += 1;
    if (kind === "turn.ended") completed = record["outcome"] === "completed";
  }
  const entries = entriesOf(records);
  const attributes = { title: "", dialect: DIALECT, labels: {}, notes: {} };
  const items = new Map(itemsOf({ entries, interruption: null, attributes }).map((item) => [item.id, item]));
  const results = new Map<string, { readonly output: string; readonly failed: boolean }>();
  for (const item of items.values()) {
    if (item.kind !== "call" || (item.state !== "done" && item.state !== "failed")) continue;
    results.set(item.call, { output: item.output ?? "", failed: item.state === "failed" });
  }
  return { items, starts, safe, results, compactions, completed };
}

/** Each message and result once, where it was first recorded: what an epoch retains is there already. */
function entriesOf(records: readonly JournalRecord[]): Entry<unknown>[] {
  const entries = new Map<string, Entry<unknown>>();
  const add = (record: JournalRecord, made: Record<string, unknown>, message: unknown): void => {
    const id = String(made["id"]);
    if (entries.has(id)) return;
    const { seq, at } = record;
    entries.set(id, {
      id,
      seq,
      at,
      turn: Number(made["turn"] ?? record["turn"] ?? 0),
      step: String(made["step"] ?? id),
      message,
      metadata: (made["metadata"] ?? {}) as Entry<unknown>["metadata"],
      ...(typeof made["synthetic"] === "string" ? { synthetic: made["synthetic"] } : {}),
      ...(made["call"] && typeof made["call"] === "object"
        ? { call: made["call"] as { message: string; index: number } }
        : {}),
      ...(typeof made["model"] === "string" ? { model: made["model"] } : {}),
    });
  };
  for (const record of records) {
    if (record.kind === "message") add(record, record, decodeStored(record["message"]));
    if (record.kind === "repair") {
      for (const made of record["entries"] as unknown as Record<string, unknown>[])
        add(record, made, decodeStored(made["message"]));
    }
    if (record.kind === "tool.ended") {
      const { call, message, index } = record;
      const place = typeof message === "string" && typeof index === "number" ? { call: { message, index } } : {};
      add(record, { id: record["id"], ...place }, resultOf(record, String(call)));
    }
  }
  return [...entries.values()];
}

function resultOf(record: JournalRecord, call: string): unknown {
  if (record["shown"] !== undefined) return decodeStored(record["shown"]);
  const outcome = "error" in record ? { error: record["error"] } : { value: record["value"] };
  return dialects[DIALECT].result({ id: call, name: String(record["name"]) }, outcome);
}

function decodeStored(stored: unknown): unknown {
  const { decode } = dialects[DIALECT];
  return decode ? decode(stored as never) : stored;
}
