import { basename, dirname, join } from "node:path";
import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import { DatabaseCopy } from "../../files/database.ts";
import { type Door, Refused } from "../../files/door.ts";
import type { LineEntries } from "../../mend/entries.ts";

/** An exchange as `session-store.db` has it: the prompt, and the last answer to it. */
export interface Turn {
  readonly prompt: string;
  readonly answer: string;
  readonly at: string;
}

const TEXT_BYTES_MAX = 16 * 2 ** 20;

/**
 * Where Copilot repeats what was said: `tool.execution_start` has the input of each call, the snapshot before a
 * compaction has every message, the snapshots of files have prompts, and `session-store.db` has prompts and answers.
 */
export class Twins {
  readonly turns: readonly Turn[];
  /** By the id of the event. */
  readonly prompts = new Map<string, { readonly content: string; readonly at: string }>();
  readonly calls = new Map<string, { readonly name: string; readonly input: unknown }>();
  readonly results = new Map<string, string>();
  /** What the model said before its calls, by the first of them. */
  readonly preambles = new Map<string, string>();
  readonly #said: { readonly role: string; readonly text: string }[] = [];

  readonly #path: string;
  readonly #door: Door;

  constructor(lines: LineEntries, path: string, session: string, door: Door) {
    [this.#path, this.#door] = [path, door];
    this.turns = turnsIn(path, session, door);
    for (const { prompt, answer } of this.turns)
      this.#said.push({ role: "user", text: prompt }, { role: "assistant", text: answer });
    for (const snapshot of snapshotsBeside(path, door)) {
      const { eventId, userMessage, timestamp } = fieldsOf(snapshot);
      if (typeof eventId !== "string" || typeof userMessage !== "string") continue;
      this.prompts.set(eventId, { content: userMessage, at: String(timestamp) });
      this.#said.push({ role: "user", text: userMessage });
    }
    for (const entry of lines.living) {
      const isTwin = entry.kind === "tool.execution_start" || entry.kind === "model.messages_snapshot";
      if (!isTwin || entry.state === "partial") continue;
      const data = fieldsOf(fieldsOf(lines.valueOf(entry))["data"]);
      if (entry.kind === "tool.execution_start")
        this.calls.set(String(data["toolCallId"]), { name: String(data["toolName"]), input: data["arguments"] });
      for (const message of listIn(data["messages"])) this.#see(fieldsOf(message));
    }
  }

  #see(message: Fields): void {
    const text = textIn(message["content"]) ?? "";
    const { role } = message;
    if (role === "tool") this.results.set(String(message["tool_call_id"]), text);
    else if (role === "user" || role === "assistant")
      this.#said.push({ role, text: text.replace(/^<current_datetime>[^<]*<\/current_datetime>\s*/, "") });
    const calls = listIn(message["tool_calls"]).map(fieldsOf);
    for (const call of calls) {
      const { name, arguments: input } = fieldsOf(call["function"]);
      const id = String(call["id"]);
      if (!this.calls.has(id)) this.calls.set(id, { name: String(name), input: parsed(input) });
      this.preambles.set(id, text);
    }
  }

  /** What a compaction left in a file of its own: the first one, the second, … */
  summary(number: number): string | null {
    const folder = join(dirname(this.#path), "checkpoints");
    const start = `${String(number).padStart(3, "0")}-`;
    const file = [...this.#door.list(folder)].find(({ name, kind }) => kind === "file" && name.startsWith(start));
    return file && basename(this.#path) === "events.jsonl" ? textOf(file.path, this.#door) : null;
  }

  /** The whole of a text of which a part or some bytes were lost; null if it stands nowhere else. */
  whole(role: "user" | "assistant", broken: string): string | null {
    const pieces = broken.split(/\ufffd+/).filter((piece) => piece !== "");
    if (pieces.join("").length < 8) return null;
    const found = new Set(
      this.#said.filter((said) => said.role === role && holds(said.text, pieces)).map(({ text }) => text),
    );
    return found.size === 1 ? [...found][0]! : null;
  }
}

/** Whether the text begins with the first piece, and has the others behind it, in order. */
function holds(text: string, pieces: readonly string[]): boolean {
  let at = 0;
  return pieces.every((piece, index) => {
    const found = index === 0 && !text.startsWith(piece) ? -1 : text.indexOf(piece, at);
    at = found + piece.length;
    return found >= 0;
  });
}

function turnsIn(path: string, session: string, door: Door): Turn[] {
  const state = dirname(dirname(path));
  const store = join(dirname(state), "session-store.db");
  if (basename(path) !== "events.jsonl" || basename(state) !== "session-state" || door.facts(store) === null) return [];
  try {
    const database = DatabaseCopy.shared(store, door);
    const columns = database.tables().get("turns") ?? [];
    if (!["session_id", "user_message", "assistant_response", "timestamp"].every((name) => columns.includes(name)))
      return [];
    const rows = database.rows("select * from turns where session_id = ? order by id", session);
    return [...rows].map((row) => ({
      prompt: textIn(row["user_message"]) ?? "",
      answer: textIn(row["assistant_response"]) ?? "",
      at: String(row["timestamp"]),
    }));
  } catch (error) {
    if (error instanceof Refused) return [];
    throw error;
  }
}

function snapshotsBeside(path: string, door: Door): readonly unknown[] {
  const index = join(dirname(path), "rewind-file-snapshots", "index.json");
  if (basename(path) !== "events.jsonl" || door.facts(index) === null) return [];
  return listIn(fieldsOf(parsed(textOf(index, door)))["snapshots"]);
}

function textOf(path: string, door: Door): string | null {
  try {
    using file = door.openRaw(path);
    return file.size > TEXT_BYTES_MAX ? null : Buffer.from(file.read(0, file.size)).toString("utf8");
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

function parsed(text: unknown): unknown {
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
