import { join } from "node:path";
import type { LoadStore } from "../contract.ts";
import { type Piece, TOOL, type TurnText } from "../turns.ts";

interface Memory {
  saveThread(options: { thread: unknown }): Promise<unknown>;
  saveMessages(options: { messages: readonly unknown[] }): Promise<unknown>;
  recall(options: object): Promise<{ readonly messages: readonly unknown[] }>;
  listThreads(options: object): Promise<{ readonly threads: readonly unknown[] }>;
}

const RESOURCE = "user";
/** Messages per call where that is not timed. */
const BATCH = 500;

export const loadMastra: LoadStore = async (load) => {
  const { Memory } = (await load("@mastra/memory")) as { Memory: new (options: object) => Memory };
  const { LibSQLStore } = (await load("@mastra/libsql")) as {
    LibSQLStore: new (options: object) => { init(): Promise<void>; close(): Promise<void> };
  };
  return async (folder) => {
    const storage = new LibSQLStore({ id: "bench", url: `file:${join(folder, "mastra.db")}` });
    await storage.init();
    const memory = new Memory({ storage, options: { lastMessages: false } });
    const begin = async (title: string): Promise<string> => {
      const id = crypto.randomUUID();
      const now = new Date();
      await memory.saveThread({
        thread: { id, resourceId: RESOURCE, title, createdAt: now, updatedAt: now, metadata: {} },
      });
      return id;
    };
    return {
      create: async (title) => {
        const id = await begin(title);
        return {
          id,
          prepare: (turn) => {
            const messages = mastraForms(turn, id);
            return async () => {
              for (const message of messages) await memory.saveMessages({ messages: [message] });
            };
          },
          close: async () => {},
        };
      },
      fill: async (turns) => {
        const id = await begin("");
        let batch: unknown[] = [];
        for (const turn of turns) {
          batch.push(...mastraForms(turn, id));
          if (batch.length < BATCH) continue;
          await memory.saveMessages({ messages: batch });
          batch = [];
        }
        if (batch.length > 0) await memory.saveMessages({ messages: batch });
        return id;
      },
      resume: async (threadId) => {
        const { messages } = await memory.recall({ threadId, resourceId: RESOURCE, perPage: false });
        return { messages: messages.length, kept: messages };
      },
      list: async () => (await memory.listThreads({ filter: { resourceId: RESOURCE }, perPage: false })).threads.length,
      close: () => storage.close(),
    };
  };
};

/** Times a millisecond apart, as its order is by time. */
function mastraForms(turn: TurnText, threadId: string): unknown[] {
  const start = Date.UTC(2026, 0, 1) + turn.index * turn.pieces.length;
  return turn.pieces.map((piece, i) => ({
    id: `${threadId}-${turn.index}-${i}`,
    role: piece.kind === "prompt" ? "user" : "assistant",
    createdAt: new Date(start + i),
    threadId,
    resourceId: RESOURCE,
    content: { format: 2, parts: partsOf(piece) },
  }));
}

function partsOf(piece: Piece): unknown[] {
  const text = { type: "text", text: piece.text };
  if (piece.kind === "prompt" || piece.kind === "answer") return [text];
  if (piece.kind === "call") return [text, invocation({ state: "call", toolCallId: piece.id, args: piece.input })];
  return [invocation({ state: "result", toolCallId: piece.id, args: {}, result: piece.text })];
}

function invocation(state: object): unknown {
  return { type: "tool-invocation", toolInvocation: { ...state, toolName: TOOL } };
}
