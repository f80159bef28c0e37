import type { ModelPart, SpokenPart, Transfer, WrittenSession } from "../../contract/transfer.ts";
import { Making } from "../../transfer/making.ts";

/** The version whose form this is. */
const VERSION = "1.18.33";
const TOKENS = { total: 0, input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };
const MODEL = { providerID: "unknown", modelID: "unknown" };

/**
 * What `opencode export` prints and `opencode import` takes: OpenCode alone writes to its database, whose tables change
 * from version to version.
 */
export function write(transfer: Transfer): WrittenSession {
  const { cwd, at, title, steps } = transfer;
  const making = new Making(transfer);
  const ids = new Ids(transfer, making);
  const sessionID = `ses_${ids.next()}`;
  let parentID = `msg_${ids.next()}`;
  const messages: object[] = [];
  for (const step of steps) {
    const created = making.nextMs();
    const id = `msg_${ids.next()}`;
    const known = { sessionID, messageID: id };
    const part = (fields: object): object => ({ ...fields, id: `prt_${ids.next()}`, ...known });
    if (step.kind === "user") {
      parentID = id;
      const info = { role: "user", time: { created }, agent: "build", model: MODEL, summary: { diffs: [] } };
      messages.push({ info: { ...info, id, sessionID }, parts: step.parts.map((each) => part(userPart(each))) });
      continue;
    }
    const hasCalls = step.parts.some(({ type }) => type === "call");
    const finish = hasCalls ? "tool-calls" : "stop";
    messages.push({
      info: {
        ...{ parentID, role: "assistant", mode: "build", agent: "build", path: { cwd, root: cwd }, cost: 0 },
        ...{ tokens: TOKENS, ...MODEL, time: { created, completed: created }, finish, id, sessionID },
      },
      parts: [
        part({ type: "step-start" }),
        ...step.parts.map((each) => part(modelPart(each, created, making))),
        part({ reason: finish, type: "step-finish", tokens: TOKENS, cost: 0 }),
      ],
    });
  }
  const info = {
    ...{ id: sessionID, slug: `holdfast-${making.hex(8)}`, projectID: "global", directory: cwd },
    ...{ title: title ?? "Session moved by holdfast export", version: VERSION },
    time: { created: at, updated: making.nextMs() },
  };
  return {
    id: sessionID,
    files: [{ path: null, name: `${sessionID}.json`, text: `${JSON.stringify({ info, messages }, null, 2)}\n` }],
    resume: [
      ["opencode", "import", "{file}"],
      ["opencode", "--session", sessionID],
    ],
    leftOut: making.leftOut(),
  };
}

/** They sort in the order in which they are made, before those that OpenCode makes later. */
class Ids {
  readonly #making: Making;
  #count: number;

  constructor({ at }: Transfer, making: Making) {
    this.#making = making;
    this.#count = at * 0x1000;
  }

  next(): string {
    const time = (BigInt(this.#count++) & 0xffff_ffff_ffffn).toString(16).padStart(12, "0");
    return `${time}${this.#making.hex(14)}`;
  }
}

function userPart(part: SpokenPart): object {
  if (part.type === "text") return part;
  return { type: "file", mime: part.mediaType, filename: "image", url: `data:${part.mediaType};base64,${part.data}` };
}

function modelPart(part: ModelPart, at: number, making: Making): object {
  const time = { start: at, end: at };
  if (part.type !== "call") return { ...part, time };
  const { id: callID, name: tool, input, result } = part;
  const text = making.textOf(result.parts);
  const state = result.isError
    ? { status: "error", input, error: text, time }
    : { status: "completed", input, output: text, metadata: {}, title: tool, time };
  return { type: "tool", tool, callID, state };
}
