import { isAbsolute, resolve } from "node:path";
import type { ContentBlock, SessionUpdate, ToolCall, ToolCallContent } from "@agentclientprotocol/sdk/unstable";
import type { CallItem, ChatState, InterruptionShown, Item, PermissionAsk } from "@holdfast/server/contract";
import type { CallWords, PlanStep } from "./words.ts";

type Status = NonNullable<ToolCall["status"]>;

/** v1 has no status for a call that was interrupted or denied: it failed, and the text says how. */
const STATUS: { readonly [S in CallItem["state"]]: Status } = {
  open: "pending",
  waiting: "pending",
  running: "in_progress",
  done: "completed",
  failed: "failed",
  denied: "failed",
  unknown: "failed",
  "not-run": "failed",
};

const SAID: { readonly [S in CallItem["state"]]?: string } = {
  denied: "Denied. It did not run.",
  unknown: "Interrupted, outcome unknown: it may have taken effect.",
  "not-run": "Interrupted. It did not run.",
};

/** Turns what the agent says and does into updates for an editor. Pure. */
export class Updates {
  readonly #words: CallWords;
  readonly #cwd: string;

  constructor(words: CallWords, cwd: string) {
    this.#words = words;
    this.#cwd = cwd;
  }

  /** A recorded conversation, from its beginning. */
  history({ items, interruption, account, asks }: ChatState): SessionUpdate[] {
    const asked = new Set(asks.map(({ call }) => call));
    const planned = items.findLastIndex((item) => this.#plan(item) !== null);
    const shown = items.flatMap((item, at) => {
      const entries = this.#plan(item);
      const own = entries === null || item.kind !== "call" ? this.item(item, asked) : [];
      // A plan replaces the one before.
      return entries !== null && at === planned ? [...own, planUpdate(entries)] : own;
    });
    if (!interruption || asks.length > 0) return shown;
    return [...shown, text("agent_message_chunk", wordsFor(interruption, account))];
  }

  /** The plan as it is now; null if there is none. */
  plan({ items }: Pick<ChatState, "items">): SessionUpdate | null {
    const item = items.findLast((one) => this.#plan(one) !== null);
    return item ? planUpdate(this.#plan(item)!) : null;
  }

  /** Whether a call only sets a plan: editors have a place for that. */
  setsPlan(call: Pick<CallItem, "name" | "input">): boolean {
    return this.#words.plan(call) !== null;
  }

  #plan(item: Item): readonly PlanStep[] | null {
    if (item.kind === "note") return this.#words.planInSummary(item.text);
    return item.kind === "call" && item.state === "done" ? this.#words.plan(item) : null;
  }

  /** One recorded item. `asked`: the calls that wait for an answer. */
  item(item: Item, asked: ReadonlySet<string> = new Set()): SessionUpdate[] {
    switch (item.kind) {
      case "prompt":
        return [
          ...(item.text === "" ? [] : [text("user_message_chunk", item.text, item.id)]),
          ...images(item).map(
            (content): SessionUpdate => ({ sessionUpdate: "user_message_chunk", content, messageId: item.id }),
          ),
        ];
      case "answer":
        return item.text === "" ? [] : [text("agent_message_chunk", item.text, item.id)];
      case "reasoning":
        return item.text === "" ? [] : [text("agent_thought_chunk", item.text, item.id)];
      case "note":
        return [text("agent_thought_chunk", item.text, item.id)];
      case "call":
        return [{ sessionUpdate: "tool_call", ...this.call(item, asked.has(item.call) ? "waiting" : item.state) }];
    }
  }

  /** A call with everything that is known about it. `terminal`: it ran there, and its output is shown there. */
  call(
    item: Pick<CallItem, "call" | "name" | "input" | "output">,
    state: CallItem["state"],
    terminal?: string,
  ): ToolCall {
    const isShown = terminal !== undefined && state === "done";
    const said = isShown ? undefined : (SAID[state] ?? item.output);
    return {
      ...this.start(item),
      status: STATUS[state],
      content: [
        ...(terminal === undefined ? [] : [terminalContent(terminal)]),
        ...this.#change(item, state),
        ...(said ? [textContent(said)] : []),
      ],
    };
  }

  /** A call before anything has come of it. */
  start({ call, name, input }: Pick<CallItem, "call" | "name" | "input">): ToolCall {
    const path = this.#words.path({ name, input });
    return {
      toolCallId: call,
      title: this.#words.title({ name, input }),
      name,
      kind: this.#words.kind({ name, input }),
      status: "pending",
      rawInput: input,
      ...(path === null ? {} : { locations: [{ path: this.#absolute(path) }] }),
    };
  }

  /** What a person is asked about. */
  ask({ call, name, input, parts }: PermissionAsk): ToolCall {
    const shown = parts.map(({ label, text: value }) => `${label}: ${value}`).join("\n");
    return {
      ...this.start({ call, name, input }),
      content: [...this.#change({ name, input }, "waiting"), textContent(shown)],
    };
  }

  #change(call: Pick<CallItem, "name" | "input">, state: CallItem["state"]): ToolCallContent[] {
    // A change that was not made is not shown as one.
    if (state === "denied" || state === "not-run" || state === "failed") return [];
    const change = this.#words.change(call);
    return change ? [{ type: "diff", ...change, path: this.#absolute(change.path) }] : [];
  }

  #absolute(path: string): string {
    return isAbsolute(path) ? path : resolve(this.#cwd, path);
  }
}

export function text(
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  said: string,
  messageId?: string,
): SessionUpdate {
  return { sessionUpdate, content: { type: "text", text: said }, ...(messageId === undefined ? {} : { messageId }) };
}

export function textContent(said: string): ToolCallContent {
  return { type: "content", content: { type: "text", text: said } };
}

export function terminalContent(terminalId: string): ToolCallContent {
  return { type: "terminal", terminalId };
}

function planUpdate(entries: readonly PlanStep[]): SessionUpdate {
  return { sessionUpdate: "plan", entries: [...entries] };
}

function images({ files = [] }: Extract<Item, { kind: "prompt" }>): ContentBlock[] {
  return files.flatMap(({ data, mediaType }) =>
    data !== undefined && mediaType.startsWith("image/") ? [{ type: "image", data, mimeType: mediaType }] : [],
  );
}

function howToGoOn(asks: boolean): string {
  const finish = asks ? "Send /finish to be asked about each waiting call" : "Send /finish to finish the turn";
  return `${finish}, or just continue: the model is told what happened.`;
}

/** What an editor's user should know about a turn that was cut off, and what can be done. */
export function wordsFor(
  { text: said, answered }: Pick<InterruptionShown, "text" | "answered">,
  { words, calls, can }: Pick<ChatState["account"], "words" | "calls" | "can">,
): string {
  if (answered) return "The agent stopped before it could end this turn. Its answer is complete.";
  const lines = [
    `The last turn: ${words.status}.`,
    ...words.detail,
    ...calls.map((call) => `${call.name}: ${call.words}.`),
    ...(said === "" ? [] : [`It was saying: ${said}`]),
    can.finish === true ? howToGoOn(can.answer === true) : can.finish.words,
  ];
  return lines.join("\n");
}
