import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import type { Entry, LineEntries } from "../../mend/entries.ts";
import { historyIndexOf } from "./indexes.ts";

/**
 * Brings back items that the rollout has lost and `thread_items` still has, each at the number of its event. False if
 * there is one that it does not understand: it is then only in the index.
 */
export function bringBackItems(rollout: string, thread: string, lines: LineEntries, door: Door): boolean {
  const index = historyIndexOf(rollout, door);
  const columns = index?.tables.get("thread_items") ?? [];
  if (index === null || index.database.damage.length > 0 || !columns.includes("item_json")) return false;
  let isWhole = true;
  const seen = knownIn(lines);
  for (const row of index.database.rows(
    "select * from thread_items where thread_id = ? order by rollout_ordinal",
    thread,
  )) {
    const item = fieldsOf(parsed(row["item_json"]));
    const id = textIn(item["id"]);
    const number = Number(row["rollout_ordinal"]);
    if (id === null || seen.items.has(id) || seen.numbers.has(number)) continue;
    const made = recordsOf(item, row, thread, seen.calls);
    if (made === null) isWhole = false;
    else
      insertAt(
        number,
        lines,
        made.map((value) => lines.made(value, "main", "brought back", "brings back an item from Codex's index")),
      );
  }
  return isWhole;
}

interface Known {
  readonly items: ReadonlySet<string>;
  readonly numbers: ReadonlySet<number>;
  readonly calls: ReadonlySet<string>;
}

function knownIn(lines: LineEntries): Known {
  const [items, numbers, calls] = [new Set<string>(), new Set<number>(), new Set<string>()];
  for (const entry of lines.living) {
    const { payload, ordinal } = fieldsOf(lines.valueOf(entry));
    if (typeof ordinal === "number") numbers.add(ordinal);
    const { type, item } = fieldsOf(payload);
    if (type === "item_completed") items.add(String(fieldsOf(item)["id"]));
    for (const { id } of entry.calls) calls.add(id);
    for (const id of entry.results) calls.add(id);
  }
  return { items, numbers, calls };
}

function recordsOf(item: Fields, row: Fields, thread: string, calls: ReadonlySet<string>): readonly Fields[] | null {
  const { id } = item;
  const timestamp = new Date(Number(row["created_at_ms"])).toISOString();
  const event = (completed: Fields): readonly Fields[] => {
    const { turn_id, started_at_ms, completed_at_ms, rollout_ordinal: ordinal } = row;
    const payload = {
      type: "item_completed",
      thread_id: thread,
      turn_id,
      item: completed,
      started_at_ms,
      completed_at_ms,
    };
    return [{ timestamp, ordinal, type: "event_msg", payload }];
  };
  switch (item["type"]) {
    case "userMessage":
      return event({ type: "UserMessage", id, content: item["content"] });
    case "agentMessage":
      return event({ type: "AgentMessage", id, content: [{ type: "Text", text: item["text"] }] });
    case "reasoning":
      return event({ type: "Reasoning", id, summary_text: item["summary"], raw_content: item["content"] });
    case "commandExecution": {
      // The event has more than the index: only what the model is shown comes back.
      const cmd = textIn(fieldsOf(listIn(item["commandActions"])[0])["command"]) ?? textIn(item["command"]);
      if (cmd === null || calls.has(String(id))) return [];
      const call = { type: "function_call", name: "exec_command", arguments: JSON.stringify({ cmd }), call_id: id };
      const output = `Process exited with code ${String(item["exitCode"])}\nOutput:\n${String(item["aggregatedOutput"] ?? "")}`;
      return [call, { type: "function_call_output", call_id: id, output }].map((payload) => ({
        ...{ timestamp, type: "response_item", payload },
      }));
    }
    default:
      return null;
  }
}

/** Before the first record with a higher number, or at the end. */
function insertAt(number: number, lines: LineEntries, made: readonly Entry[]): void {
  const numberOf = (entry: Entry): number | null => {
    const { ordinal } = fieldsOf(lines.valueOf(entry));
    return typeof ordinal === "number" ? ordinal : null;
  };
  const { living } = lines;
  const next = living.find((entry) => (numberOf(entry) ?? -1) > number);
  const last = living.at(-1);
  if (next) lines.insert("before", new Map([[next, made]]));
  else if (last) lines.insert("behind", new Map([[last, made]]));
  else lines.entries.push(...made);
}

function parsed(text: unknown): unknown {
  try {
    return typeof text === "string" ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}
