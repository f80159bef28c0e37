import { join } from "node:path";
import type { ModelPart, SpokenPart, Transfer, WrittenSession } from "../../contract/transfer.ts";
import { Refused } from "../../files/door.ts";
import { lines, Making } from "../../transfer/making.ts";

/** The version whose lines these are. */
const VERSION = "2.1.328";
/** What Claude Code makes of the name of a folder that is longer was not seen. */
const FOLDER_CHARS_MAX = 200;

/** One line for each block; the blocks of one answer share the id of the message, and each result hangs on its call. */
export function write(transfer: Transfer, projects: string): WrittenSession {
  const { id, cwd, title, steps } = transfer;
  const folder = cwd.replaceAll(/[^a-zA-Z0-9]/g, "-");
  if (folder.length > FOLDER_CHARS_MAX)
    throw new Refused(
      cwd,
      `Claude Code shortens a path of more than ${FOLDER_CHARS_MAX} characters in a way of its own`,
    );
  const making = new Making(transfer);
  const records: object[] = [];
  let parentUuid: string | null = null;
  let prompt = "";
  const add = (type: "user" | "assistant", message: object, more: object = {}, parent = parentUuid): string => {
    const uuid = making.uuid();
    records.push({
      ...{ parentUuid: parent, isSidechain: false, type, message, ...more, uuid, timestamp: making.nextTime() },
      ...{ userType: "external", entrypoint: "cli", cwd, sessionId: id, version: VERSION, gitBranch: "" },
    });
    parentUuid = uuid;
    return uuid;
  };
  for (const step of steps) {
    if (step.kind === "user") {
      const [first] = step.parts;
      const content = step.parts.length === 1 && first?.type === "text" ? first.text : step.parts.map(blockOf);
      prompt = first?.type === "text" ? first.text : prompt;
      add("user", { role: "user", content });
      continue;
    }
    const message = `msg_${making.hex(24)}`;
    const calls: { readonly uuid: string; readonly call: Extract<ModelPart, { type: "call" }> }[] = [];
    const parts = step.parts.filter((part) => part.type !== "reasoning");
    for (let left = step.parts.length - parts.length; left > 0; left--) making.leaveReasoning();
    const hasCalls = parts.some(({ type }) => type === "call");
    for (const part of parts) {
      const block =
        part.type === "call"
          ? { type: "tool_use", id: part.id, name: part.name, input: part.input }
          : { type: "text", text: part.text };
      const uuid = add("assistant", {
        ...{ id: message, type: "message", role: "assistant", model: "unknown", content: [block] },
        ...{ stop_reason: hasCalls ? "tool_use" : "end_turn", stop_sequence: null },
        usage: { input_tokens: 0, output_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
      });
      if (part.type === "call") calls.push({ uuid, call: part });
    }
    for (const { uuid, call } of calls) {
      const { parts: said, isError } = call.result;
      const [first] = said;
      const content = said.length === 1 && first?.type === "text" ? first.text : said.map(blockOf);
      const block = { type: "tool_result", tool_use_id: call.id, content, is_error: isError };
      add("user", { role: "user", content: [block] }, { sourceToolAssistantUUID: uuid }, uuid);
    }
  }
  const notes = [
    ...(title === null ? [] : [{ type: "custom-title", customTitle: title, sessionId: id }]),
    ...(parentUuid === null ? [] : [{ type: "last-prompt", lastPrompt: prompt, leafUuid: parentUuid, sessionId: id }]),
  ];
  const name = `${id}.jsonl`;
  return {
    id,
    files: [{ path: join(projects, folder, name), name, text: lines([...records, ...notes]) }],
    resume: [["claude", "--resume", id]],
    leftOut: making.leftOut(),
  };
}

const blockOf = (part: SpokenPart): object =>
  part.type === "text"
    ? { type: "text", text: part.text }
    : { type: "image", source: { type: "base64", media_type: part.mediaType, data: part.data } };
