import * as fs from "node:fs";
import { join } from "node:path";
import type { LoadStore } from "../contract.ts";
import { type Piece, TOOL, type TurnText } from "../turns.ts";

interface Recording {
  initialize(): Promise<void>;
  recordMessage(message: { model: string; type: "user" | "gemini"; content: unknown }): string;
  recordToolCalls(model: string, calls: readonly unknown[]): void;
  getConversation(): { readonly messages: unknown[] };
  getConversationFilePath(): string;
}
interface Loaded {
  readonly messages: readonly { readonly toolCalls?: readonly unknown[] }[];
  readonly firstUserMessage?: string;
}
interface Services {
  readonly ChatRecordingService: new (context: unknown) => Recording;
  loadConversationRecord(path: string, options?: { readonly metadataOnly: true }): Promise<Loaded | null>;
}

const MODEL = "a-model";

export const loadGemini: LoadStore = async (load) => {
  const services = (await load("@google/gemini-cli-core/dist/src/services/chatRecordingService.js")) as Services;
  const { ChatRecordingService, loadConversationRecord } = services;
  return async (folder) => {
    const chats = join(folder, "chats");
    let count = 0;
    const begin = async (): Promise<Recording> => {
      // The file is named after the minute and the first eight characters of the id.
      const promptId = `${String(++count).padStart(8, "0")}-${process.pid}`;
      const config = { getProjectRoot: () => "/work/project", storage: { getProjectTempDir: () => folder } };
      const recording = new ChatRecordingService({ promptId, config, toolRegistry: { getTool: () => undefined } });
      await recording.initialize();
      return recording;
    };
    return {
      create: async () => {
        const recording = await begin();
        return {
          id: recording.getConversationFilePath(),
          prepare: (turn) => prepare(recording, turn),
          close: async () => {},
        };
      },
      fill: async (turns) => {
        const recording = await begin();
        for (const turn of turns) {
          await prepare(recording, turn)();
          // What it searches for every message. The file is the same without it.
          recording.getConversation().messages.length = 0;
        }
        return recording.getConversationFilePath();
      },
      resume: async (path) => {
        const loaded = await loadConversationRecord(path);
        if (!loaded) throw new Error("it could not load the session");
        // A result is part of the message that asked for it.
        const messages = loaded.messages.reduce((sum, { toolCalls }) => sum + 1 + (toolCalls?.length ?? 0), 0);
        return { messages, kept: loaded };
      },
      list: async () => {
        let listed = 0;
        for (const name of fs.readdirSync(chats)) {
          const loaded = await loadConversationRecord(join(chats, name), { metadataOnly: true });
          if (loaded?.firstUserMessage) listed++;
        }
        return listed;
      },
      close: async () => {},
    };
  };
};

function prepare(recording: Recording, { pieces }: TurnText): () => Promise<void> {
  const acts = pieces.map((piece, i) => {
    if (piece.kind === "result") {
      const calls = [finishedCall(pieces[i - 1] as Piece & { kind: "call" }, piece.text)];
      return () => recording.recordToolCalls(MODEL, calls);
    }
    const type = piece.kind === "prompt" ? ("user" as const) : ("gemini" as const);
    const message = { model: MODEL, type, content: [{ text: piece.text }] };
    return () => void recording.recordMessage(message);
  });
  return async () => {
    for (const act of acts) act();
  };
}

function finishedCall({ id, input }: Piece & { kind: "call" }, output: string): unknown {
  const result = [{ functionResponse: { id, name: TOOL, response: { output } } }];
  return { id, name: TOOL, args: input, result, status: "success", timestamp: new Date().toISOString() };
}
