import { setTimeout as sleep } from "node:timers/promises";

/** A message in the shape of Anthropic's API, as far as the demo needs it. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string | readonly Block[];
}
export interface Block {
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly name?: string;
  readonly tool_use_id?: string;
  readonly content?: string;
  readonly is_error?: boolean;
}

export const PROMPT = "Release 2.4: test it, publish it, update the docs, tell the team.";
const WORD_MS = 45;

/** The offline model. What it does next depends on nothing but the messages that it is given, as with a real one. */
export async function ask(
  messages: readonly Message[],
  onWord: (text: string) => void,
  signal: AbortSignal,
): Promise<Message> {
  const { text, calls } = next(messages);
  for (const word of text.split(/(?<= )/)) {
    await sleep(WORD_MS, undefined, { signal });
    onWord(word);
  }
  const uses = calls.map((name, n) => ({ type: "tool_use", id: `toolu_${messages.length}_${n}`, name, input: {} }));
  return { role: "assistant", content: [{ type: "text", text }, ...uses] };
}

function next(messages: readonly Message[]): { readonly text: string; readonly calls: readonly string[] } {
  const results = blocksOf(messages.at(-1)).filter(({ type }) => type === "tool_result");
  const told = (words: string): boolean => results.some(({ content = "" }) => content.includes(words));
  if (results.length === 0) {
    const calls = ["run_tests", "publish", "update_docs", "notify_team"];
    return { text: "I will do all four.", calls };
  }
  if (told("outcome unknown")) {
    return { text: "Before I repeat anything, I look at what took effect.", calls: ["look"] };
  }
  if (told("docs: 2.3")) {
    return { text: "It is published, but the docs are old.", calls: ["update_docs", "notify_team"] };
  }
  const text =
    "Release 2.4 is out. The tests passed before the first crash; the package was already published when I " +
    "looked, so I did not publish it again; the docs had not been updated, so I updated them; and the team knows.";
  return { text, calls: [] };
}

export function blocksOf(message: Message | undefined): readonly Block[] {
  return typeof message?.content === "object" ? message.content : [];
}
