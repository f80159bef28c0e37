import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { listRecordings, placeRecording } from "../../real/recording.ts";

/** Conversations that a real program had, for formats whose own programs could not be had. */
export interface RecordedConversation {
  readonly name: string;
  readonly messages: readonly RecordedMessage[];
}

export interface RecordedMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly Readonly<Record<string, unknown>>[];
  readonly ts: number;
}

export const CONVERSATIONS: readonly RecordedConversation[] = listRecordings("cline").flatMap((recording) => {
  const folder = mkdtempSync("/tmp/hf-lab");
  try {
    const { home } = placeRecording(recording, folder);
    return recording.sessions.map(({ id }) => {
      const text = readFileSync(join(home, ".cline/data/sessions", id, `${id}.messages.json`), "utf8");
      const { messages } = JSON.parse(text) as { messages: RecordedMessage[] };
      return {
        name: `${recording.story}-${id}`,
        messages: messages.map(({ role, content }, at) => ({ role, content, ts: 1_795_000_000_000 + at * 1_500 })),
      };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
