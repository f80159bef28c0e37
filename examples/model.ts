import { setTimeout as sleep } from "node:timers/promises";

/**
 * A stand-in for a model, so that the examples need no key and no network. Messages have the shape of Anthropic's API.
 */
export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string | readonly Block[];
}
export interface Block {
  readonly type: string;
  text?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly tool_use_id?: string;
  readonly content?: string;
  readonly is_error?: boolean;
}

const PLAN = ["read_notes", "send_mail", "post_summary"];

/** Streams an answer word by word. It reads what it is told of calls that were cut off, as a real model would. */
export async function ask(
  messages: readonly Message[],
  onText: (text: string) => unknown,
  signal?: AbortSignal,
): Promise<Message> {
  const { text, call } = plan(messages);
  for (const word of text.split(/(?<= )/)) {
    await sleep(60, undefined, signal && { signal });
    await onText(word);
  }
  const calls = call.map((name, n) => ({ type: "tool_use", id: `call_${messages.length}_${n}`, name, input: {} }));
  return { role: "assistant", content: [{ type: "text", text }, ...calls] };
}

function plan(messages: readonly Message[]): { text: string; call: string[] } {
  const last = resultsIn(messages.slice(-1));
  if (last.length === 0) return { text: "I will read the notes, send the mail and post the summary.", call: PLAN };
  const told = (words: string, results: readonly Block[]): string =>
    results.flatMap((result) => (result.content?.includes(words) ? nameOf(messages, result) : [])).join(" and ");
  const again = told("safe to run", last);
  if (again) return { text: `${again} never started, so I run it now.`, call: again.split(" and ") };
  const unknown = told("heck before", resultsIn(messages));
  const doubt = unknown ? `, but I do not know whether ${unknown} took effect: please check` : "";
  return { text: `That is all done${doubt}.`, call: [] };
}

function resultsIn(messages: readonly Message[]): Block[] {
  return messages.flatMap(blocksOf).filter(({ type }) => type === "tool_result");
}

function nameOf(messages: readonly Message[], { tool_use_id }: Block): string {
  return messages.flatMap(blocksOf).find(({ id }) => id === tool_use_id)?.name ?? "";
}

export function blocksOf(message: Message | undefined): readonly Block[] {
  return typeof message?.content === "object" ? message.content : [];
}

/** The calls that a message makes. */
export function callsIn(message: Message): { id: string; name: string }[] {
  return blocksOf(message).flatMap(({ type, id, name }) => (type === "tool_use" && id && name ? [{ id, name }] : []));
}
