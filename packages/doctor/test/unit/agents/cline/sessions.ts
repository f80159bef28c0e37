import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listRecordings, placeRecording } from "../../../real/recording.ts";
import type { DocumentSubject } from "../document-suite.ts";

/** Sessions of the command as it wrote them, and the same conversations as the extension keeps them. */

const recordings = listRecordings("cline");

export const SESSIONS: readonly DocumentSubject[] = recordings.flatMap((recording) =>
  recording.sessions.map(({ id }) => ({
    name: `${recording.story} ${id}`,
    place(folder: string): string {
      const { home } = placeRecording(recording, folder);
      return join(home, ".cline/data/sessions", id, `${id}.messages.json`);
    },
  })),
);

interface Message {
  id?: string;
  role: string;
  content: { type: string; text?: string }[];
  ts?: number;
}

/** The extension keeps neither ids nor an envelope, and shows each text. */
export const TASKS: readonly DocumentSubject[] = recordings.flatMap((recording) =>
  recording.sessions.map(({ id }, index) => ({
    name: `task of ${recording.story} ${id}`,
    place(folder: string): string {
      const from = mkdtempSync("/tmp/hf-lab");
      const { home } = placeRecording(recording, from);
      const path = join(home, ".cline/data/sessions", id, `${id}.messages.json`);
      const { messages } = JSON.parse(readFileSync(path, "utf8")) as { messages: Message[] };
      rmSync(from, { recursive: true, force: true });
      return writeTask(join(folder, "saoudrizwan.claude-dev"), String(1_795_000_000_000 + index), messages);
    },
  })),
);

function writeTask(storage: string, task: string, messages: readonly Message[]): string {
  const folder = join(storage, "tasks", task);
  mkdirSync(folder, { recursive: true });
  mkdirSync(join(storage, "state"), { recursive: true });
  const shown: object[] = [];
  const add = (say: string, text: string): void =>
    void shown.push({ ts: Number(task) + shown.length, type: "say", say, text });
  for (const { role, content } of messages) {
    const text = content.map((block) => block.text ?? JSON.stringify(block)).join("\n\n");
    if (role === "user") {
      if (shown.length === 0) add("task", text);
      add("api_req_started", JSON.stringify({ request: text, tokensIn: 10 }));
    } else
      for (const block of content) add(block.type === "text" ? "text" : "tool", block.text ?? JSON.stringify(block));
  }
  const first = messages[0]!.content[0]!.text!;
  const history = [
    { id: "1700000000000", ts: 1_700_000_000_000, task: "another" },
    { id: task, ts: Number(task), task: first, tokensIn: 1, tokensOut: 1, totalCost: 0 },
  ];
  writeFileSync(join(storage, "state/taskHistory.json"), JSON.stringify(history));
  writeFileSync(join(folder, "ui_messages.json"), JSON.stringify(shown));
  writeFileSync(join(folder, "task_metadata.json"), JSON.stringify({ files_in_context: [], model_usage: [] }, null, 2));
  const path = join(folder, "api_conversation_history.json");
  writeFileSync(path, JSON.stringify(messages.map(({ id: _, ...message }) => message)));
  return path;
}

export const filesIn = (folder: string): string[] => readdirSync(folder, { recursive: true, encoding: "utf8" });
