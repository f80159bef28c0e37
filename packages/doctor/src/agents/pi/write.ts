import { join } from "node:path";
import type { SpokenPart, Transfer, WrittenSession } from "../../contract/transfer.ts";
import { lines, Making } from "../../transfer/making.ts";
import { folderFor, VERSION_MAX } from "./format.ts";

const USAGE = {
  ...{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 },
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

/** `folder`: where all sessions are, if the user has named one; else each project has one below `sessions`. */
export function write(transfer: Transfer, sessions: string, folder: string | null): WrittenSession {
  const { id, cwd, title, steps, at } = transfer;
  const making = new Making(transfer);
  const records: object[] = [];
  const timestamp = making.nextTime();
  let parentId: string | null = null;
  const add = (entry: (timestamp: number) => object): void => {
    const own: string = making.hex(8);
    const ms = making.nextMs();
    const { type, ...rest } = entry(ms) as { readonly type: string };
    records.push({ type, id: own, parentId, timestamp: new Date(ms).toISOString(), ...rest });
    parentId = own;
  };
  if (title !== null) add(() => ({ type: "session_info", name: title }));
  for (const step of steps) {
    if (step.kind === "user") {
      add((ms) => ({ type: "message", message: { role: "user", content: step.parts.map(blockOf), timestamp: ms } }));
      continue;
    }
    const calls = step.parts.filter((part) => part.type === "call");
    const content = step.parts.map((part) => {
      if (part.type === "reasoning") return { type: "thinking", thinking: part.text };
      if (part.type === "text") return part;
      return { type: "toolCall", id: part.id, name: part.name, arguments: part.input };
    });
    // Of another model than the one that goes on, pi sends reasoning as text or not at all.
    const source = { api: "unknown", provider: "unknown", model: "unknown", usage: USAGE };
    const stopReason = calls.length > 0 ? "toolUse" : "stop";
    add((ms) => ({
      type: "message",
      message: { role: "assistant", content, ...source, stopReason, timestamp: ms },
    }));
    for (const { id: toolCallId, name: toolName, result } of calls)
      add((ms) => ({
        type: "message",
        message: {
          ...{ role: "toolResult", toolCallId, toolName, content: result.parts.map(blockOf) },
          ...{ isError: result.isError, timestamp: ms },
        },
      }));
  }
  const header = { type: "session", version: VERSION_MAX, id, timestamp, cwd };
  const name = `${new Date(at).toISOString().replaceAll(/[:.]/g, "-")}_${id}.jsonl`;
  return {
    id,
    files: [{ path: join(folder ?? join(sessions, folderFor(cwd)), name), name, text: lines([header, ...records]) }],
    resume: [["pi", "--session", "{file}"]],
    leftOut: making.leftOut(),
  };
}

const blockOf = (part: SpokenPart): object =>
  part.type === "text"
    ? { type: "text", text: part.text }
    : { type: "image", data: part.data, mimeType: part.mediaType };
