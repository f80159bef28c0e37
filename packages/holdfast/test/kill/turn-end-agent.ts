import { appendFileSync, writeSync } from "node:fs";
import type { AnthropicMessage, Session, Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { deadlyDisk } from "../deadly-disk.ts";

/**
 * Agents that are killed at one write to the journal: as programs of their own, and again in the test, which carries
 * on.
 */

type M = AnthropicMessage;

export interface Orders {
  readonly way: keyof typeof ways;
  readonly folder: string;
  /** Each request to the model adds a line to this file. */
  readonly asked: string;
  /** SIGKILL at the nth write to the journal; 0: never. */
  readonly killAt: number;
  /** How much of that write reaches the file. */
  readonly written: "all" | "half";
}

export const PROMPT: M = { role: "user", content: "Look, then tell me." };
export const ANSWER = "I have looked: all is well.";

/** The model: a pure function of what it is sent. */
function reply(messages: readonly M[], asked: string): M {
  const last = messages.at(-1);
  appendFileSync(asked, `${last?.role}\n`);
  const seen = JSON.stringify(messages);
  if (seen.includes("tool_result")) return { role: "assistant", content: [{ type: "text", text: ANSWER }] } as never;
  return { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "look", input: {} }] } as never;
}

const makesCall = ({ content }: M): boolean => JSON.stringify(content).includes("tool_use");
const RESULT: M = {
  role: "user",
  content: [{ type: "tool_result", tool_use_id: "call_1", content: "seen" }],
} as never;

/** One life of each kind of agent, as the guide has it. */
export const ways = {
  async hooks(session: Session<M>, asked: string): Promise<void> {
    const found = session.interruption;
    const turn = found ? await session.resumeTurn() : await session.startTurn(PROMPT);
    for (;;) {
      const { draft } = turn.request();
      const answer = reply(session.messages, asked);
      draft.push({ text: "words" });
      const isLast = !makesCall(answer);
      await draft.commit(answer, { usage: { outputTokens: 1 }, end: isLast });
      if (isLast) return;
      await turn.tool("call_1", () => "seen");
    }
  },

  async append(session: Session<M>, asked: string): Promise<void> {
    const turn = session.interruption ? await session.resumeTurn() : await session.startTurn(PROMPT);
    for (;;) {
      const answer = reply(session.messages, asked);
      const isLast = !makesCall(answer);
      await turn.append(answer, { end: isLast });
      if (isLast) return;
      await turn.append(RESULT);
    }
  },

  async array(session: Session<M>, asked: string): Promise<void> {
    const messages: M[] = [...session.messages];
    if (!session.interruption) {
      messages.push(PROMPT);
      await session.sync(messages);
    }
    for (;;) {
      const answer = reply(messages, asked);
      messages.push(answer);
      await session.sync(messages);
      if (!makesCall(answer)) return;
      messages.push(RESULT);
      await session.sync(messages);
    }
  },

  /** The message is in the array from its first word on, and grows there. */
  async growing(session: Session<M>, asked: string): Promise<void> {
    const messages: M[] = [...session.messages];
    if (!session.interruption) {
      messages.push(PROMPT);
      await session.sync(messages);
    }
    for (;;) {
      const answer = reply(messages, asked);
      messages.push({ role: "assistant", content: [{ type: "text", text: "I have" }] } as never);
      await session.sync(messages, { open: true });
      await session.flush();
      messages[messages.length - 1] = answer;
      await session.sync(messages);
      if (!makesCall(answer)) return;
      messages.push(RESULT);
      await session.sync(messages);
    }
  },
};

export const OPEN = { draftMs: 0 } as const;

function openDeadly({ folder, killAt, written }: Orders): Promise<Store> {
  const disk = deadlyDisk({ killAfter: killAt, written });
  return openStoreWith((options) => openFolderStore(folder, { ...options, disk }), { recordsToolStarts: true });
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const store = await openDeadly(orders);
  const session = await store.create<M>({ ...OPEN, dialect: "anthropic" });
  await ways[orders.way](session, orders.asked);
  writeSync(1, "done\n");
  await store.close();
}
