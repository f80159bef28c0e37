import { join } from "node:path";
import type { SpokenPart, Transfer, TransferStep, WrittenSession } from "../../contract/transfer.ts";
import { lines, Making } from "../../transfer/making.ts";

/** The version whose lines these are. */
const VERSION = "0.169.0";

/** What the model is shown are the items; the user is shown the events, and Codex lists no session without one. */
export function write(transfer: Transfer, sessions: string): WrittenSession {
  const { id, cwd, at, steps } = transfer;
  const making = new Making(transfer);
  const meta = {
    ...{ id, timestamp: new Date(at).toISOString(), cwd, originator: "holdfast", cli_version: VERSION },
    source: "cli",
  };
  const records: object[] = [{ timestamp: making.nextTime(), type: "session_meta", payload: meta }];
  const add = (type: "response_item" | "event_msg", payload: object): void => {
    records.push({ timestamp: making.nextTime(), type, payload });
  };
  for (const step of steps) addStep(step, making, add);
  const time = new Date(at).toISOString();
  const name = `rollout-${time.slice(0, 19).replaceAll(":", "-")}-${id}.jsonl`;
  const path = join(sessions, ...time.slice(0, 10).split("-"), name);
  return {
    id,
    files: [{ path, name, text: lines(records) }],
    resume: [["codex", "resume", id]],
    leftOut: making.leftOut(),
  };
}

function addStep(
  step: TransferStep,
  making: Making,
  add: (type: "response_item" | "event_msg", payload: object) => void,
): void {
  if (step.kind === "user") {
    const message = step.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
    const images = step.parts.flatMap((part) => (part.type === "image" ? [dataUrl(part)] : []));
    add("response_item", { type: "message", role: "user", content: step.parts.map(inputOf) });
    add("event_msg", { type: "user_message", message, images, local_images: [], text_elements: [] });
    return;
  }
  for (const part of step.parts) {
    if (part.type === "reasoning") making.leaveReasoning();
    else if (part.type === "text") {
      const content = [{ type: "output_text", text: part.text }];
      add("event_msg", { type: "agent_message", message: part.text });
      add("response_item", { type: "message", role: "assistant", content });
    } else {
      const input = { name: part.name, arguments: JSON.stringify(part.input), call_id: part.id };
      add("response_item", { type: "function_call", ...input });
    }
  }
  for (const part of step.parts)
    if (part.type === "call") {
      const text = making.textOf(part.result.parts);
      // A result has no mark of its own for an error.
      const output = part.result.isError && !/^Error\b/.test(text) ? `Error: ${text}` : text;
      add("response_item", { type: "function_call_output", call_id: part.id, output });
    }
}

const dataUrl = ({ mediaType, data }: Extract<SpokenPart, { type: "image" }>): string =>
  `data:${mediaType};base64,${data}`;

const inputOf = (part: SpokenPart): object =>
  part.type === "text" ? { type: "input_text", text: part.text } : { type: "input_image", image_url: dataUrl(part) };
