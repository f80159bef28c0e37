import * as fs from "node:fs";
import type { LoadStore } from "../contract.ts";
import { type Piece, TOOL } from "../turns.ts";

interface SessionManager {
  appendMessage(message: unknown): string;
  getSessionFile(): string;
  buildSessionContext(): { readonly messages: readonly unknown[] };
}
interface SessionManagerClass {
  create(cwd: string, folder: string): SessionManager;
  open(path: string, folder: string): SessionManager;
  list(cwd: string, folder: string): Promise<readonly { readonly firstMessage: string }[]>;
}

const CWD = "/work/project";
const USAGE = { input: 900, output: 300, cacheRead: 0, cacheWrite: 0, totalTokens: 1200 };
const COST = { input: 0.001, output: 0.002, cacheRead: 0, cacheWrite: 0, total: 0.003 };

export const loadPi: LoadStore = async (load) => {
  const { SessionManager } = (await load("@earendil-works/pi-coding-agent")) as { SessionManager: SessionManagerClass };
  return async (folder) => ({
    create: async () => {
      const session = SessionManager.create(CWD, folder);
      return {
        id: session.getSessionFile(),
        prepare: ({ pieces }) => {
          const messages = pieces.map(piForm);
          return async () => {
            for (const message of messages) session.appendMessage(message);
          };
        },
        close: async () => {},
      };
    },
    resume: async (path) => {
      if (!fs.existsSync(path)) throw new Error("there is no session"); // `open` would begin one
      const session = SessionManager.open(path, folder);
      const { messages } = session.buildSessionContext();
      return { messages: messages.length, kept: [session, messages] };
    },
    list: async () => (await SessionManager.list(CWD, folder)).length,
    close: async () => {},
  });
};

function piForm(piece: Piece): unknown {
  const timestamp = Date.now();
  if (piece.kind === "prompt") return { role: "user", content: piece.text, timestamp };
  const text = { type: "text", text: piece.text };
  if (piece.kind === "result")
    return { role: "toolResult", toolCallId: piece.id, toolName: TOOL, content: [text], isError: false, timestamp };
  const content = [text, ...(piece.kind === "call" ? [toolCall(piece.id, piece.input)] : [])];
  const stopReason = piece.kind === "call" ? "toolUse" : "stop";
  const model = { api: "anthropic-messages", provider: "anthropic", model: "a-model" };
  return { role: "assistant", content, ...model, usage: { ...USAGE, cost: COST }, stopReason, timestamp };
}

function toolCall(id: string, args: unknown): unknown {
  return { type: "toolCall", id, name: TOOL, arguments: args };
}
