import { ERROR, INTERRUPT, RESUME } from "@langchain/langgraph-checkpoint";
import { type Json, newId } from "holdfast";
import type { NewRecord } from "holdfast/store";
import type { StoredValue } from "./records.ts";
import type { ThreadState } from "./state.ts";

/**
 * What people are shown of a thread by `holdfast ls`, `show`, `search` and `export`: the messages of the channel
 * `messages`, as a conversation in OpenAI's form. LangGraph reads none of it. A thread whose serializer does not write
 * JSON has no transcript.
 */

/** The channel of LangGraph's `MessagesAnnotation` and of `createAgent`. */
const CHANNEL = "messages";

interface ShownMessage {
  readonly role: "user" | "assistant" | "tool";
  readonly content: string;
  readonly tool_calls?: readonly Json[];
  readonly tool_call_id?: string;
}

/** The channel of a graph's input, in the checkpoint that is saved when a run begins. */
const INPUT = "__start__";

/** Of an input that is not a message. */
const INPUT_CHARS_MAX = 2000;

/** The records that a checkpoint adds to what people are shown. Adds them to the state. */
export function transcriptRecords(state: ThreadState, checkpoint: string): NewRecord[] {
  const saved = state.checkpoint("", checkpoint);
  const value = saved?.values.get(CHANNEL);
  if (value) {
    const said = "l" in value ? messageRecords(state, value.l) : [];
    return [...said, ...outcomeRecords(state, checkpoint)];
  }
  // The graph has taken its input, and has no such channel, or one that LangGraph does not save as a whole.
  const input = saved?.parent === undefined ? undefined : state.checkpoint("", saved.parent)?.values.get(INPUT);
  return [...(input ? inputRecords(state, input) : []), ...outcomeRecords(state, checkpoint)];
}

/** A run, with its input as the prompt. Nothing tells when it ends. */
function inputRecords(state: ThreadState, input: StoredValue): NewRecord[] {
  const id = newId();
  const turn = state.turn.turns + 1;
  const messages = "o" in input ? input.o[CHANNEL] : undefined;
  const items = messages && "l" in messages ? (state.list(messages.l[0]) ?? []).slice(0, messages.l[1]) : [];
  const said = items.map((item) => shownMessage(item)?.content ?? "").join("\n");
  const content =
    said ||
    ("j" in input
      ? JSON.stringify(input.j)
          .slice(0, INPUT_CHARS_MAX)
          .replace(/[\ud800-\udbff]$/, "")
      : "");
  if (content === "") return [];
  const records = [
    { kind: "turn.started", turn, prompt: id },
    { kind: "message", id, turn, step: id, message: { role: "user", content } },
    { kind: "turn.ended", turn, outcome: "completed" },
  ];
  for (const record of records) state.add(record);
  return records;
}

/** The messages that are not shown yet. */
function messageRecords(state: ThreadState, [list, length]: readonly [number, number]): NewRecord[] {
  const items = state.list(list)!.slice(0, length);
  const first = items.findLastIndex((item) => state.isShown(item)) + 1;
  const records: NewRecord[] = [];
  const add = (record: NewRecord): void => {
    state.add(record);
    records.push(record);
  };
  for (let index = first; index < items.length; index++) {
    const message = shownMessage(items[index]!);
    if (!message) continue;
    const id = newId();
    const { turns, status, resumes } = state.turn;
    if (message.role === "user" || turns === 0) {
      if (status !== "ended" && turns > 0) add({ kind: "turn.ended", turn: turns, outcome: "left" });
      add({ kind: "turn.started", turn: turns + 1, prompt: id });
    } else if (status !== "open") {
      add({ kind: "turn.resumed", turn: turns, n: resumes + 1 });
    }
    const { turns: turn } = state.turn;
    add({ kind: "message", id, turn, step: id, message: { ...message }, item: [list, index] });
    const isAnswer = message.role === "assistant" && message.tool_calls === undefined;
    if (isAnswer && index === items.length - 1) add({ kind: "turn.ended", turn, outcome: "completed" });
  }
  return records;
}

/**
 * A graph that waits for a person, goes on, or failed, by the writes of its last checkpoint. LangGraph may save those
 * before the checkpoint itself.
 */
export function outcomeRecords(state: ThreadState, checkpoint: string): NewRecord[] {
  const { turns: turn, status, resumes } = state.turn;
  if (turn === 0 || state.latest("")?.id !== checkpoint) return [];
  const record = ((): NewRecord | null => {
    const channels = new Set(state.writes("", checkpoint).map(({ channel }) => channel));
    if (channels.has(RESUME)) return status === "open" ? null : { kind: "turn.resumed", turn, n: resumes + 1 };
    if (status !== "open") return null;
    if (channels.has(INTERRUPT)) return { kind: "turn.suspended", turn, reason: "interrupt" };
    if (channels.has(ERROR)) return { kind: "turn.ended", turn, outcome: "failed" };
    return null;
  })();
  if (!record) return [];
  state.add(record);
  return [record];
}

/** Null if it is no message, or one that people are not shown. */
function shownMessage(stored: StoredValue): ShownMessage | null {
  if (!("j" in stored)) return null;
  const { id, kwargs } = (stored.j ?? {}) as { id?: unknown; kwargs?: Record<string, Json> };
  if (!Array.isArray(id) || typeof kwargs !== "object") return null;
  const content = textOf(kwargs["content"]);
  switch (String(id.at(-1)).replace(/Chunk$/, "")) {
    case "HumanMessage":
      return { role: "user", content };
    case "AIMessage": {
      const calls = callsIn(kwargs["tool_calls"]);
      return { role: "assistant", content, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
    }
    case "ToolMessage":
      return { role: "tool", content, tool_call_id: String(kwargs["tool_call_id"] ?? "") };
    default:
      return null;
  }
}

function callsIn(calls: Json | undefined): Json[] {
  if (!Array.isArray(calls)) return [];
  return (calls as Record<string, Json>[]).map(({ id, name, args }) => ({
    id: String(id ?? ""),
    type: "function",
    function: { name: String(name ?? ""), arguments: JSON.stringify(args ?? {}) },
  }));
}

function textOf(content: Json | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts = (content as { type?: string; text?: unknown }[]).map(({ text }) =>
    typeof text === "string" ? text : "",
  );
  return texts.filter(Boolean).join("\n");
}
