import type { Grade } from "../../contract/plan.ts";
import type { RecordState } from "../../contract/record.ts";
import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";
import { cleanResult } from "../../mend/clean-result.ts";
import { CUT_OFF, LOST_INPUT, LOST_RECORD, LOST_RESULT } from "../../mend/words.ts";
import { isInterrupted, lacksResult } from "./format.ts";

/** What the `data` of a damaged row becomes. */

export interface Mended {
  readonly value: Fields;
  readonly grade: Grade;
}

/** A part as it should be; null if it is so already. `earlier`: what it was in the log, the latest first. */
export function mendPart(value: unknown, state: RecordState, earlier: () => Iterable<Fields>): Mended | null {
  const readable = state === "partial" || state === "unreadable" ? mendCutPart(fieldsOf(value)) : fieldsOf(value);
  if (readable["type"] === "tool") {
    const mended = mendTool(readable, earlier);
    if (mended) return mended;
  }
  if (state === "intact") return null;
  return { value: readable, grade: state === "recovered" ? "brought back" : "unknown" };
}

function mendCutPart(value: Fields): Fields {
  const { type, text, tool, callID, state } = value;
  if ((type === "text" || type === "reasoning") && typeof text === "string" && text !== "") {
    const time = fieldsOf(value["time"]);
    return {
      ...value,
      text: `${text}\n${CUT_OFF}`,
      ...(value["time"] !== undefined && { time: { start: 0, ...time } }),
    };
  }
  if (type === "step-start") return { type };
  if (type === "step-finish") return { type, reason: textIn(value["reason"]) ?? "unknown", cost: 0, tokens: NO_TOKENS };
  if (type !== "tool" || typeof tool !== "string" || typeof callID !== "string")
    return { type: "text", text: LOST_RECORD };
  const { input, output } = fieldsOf(state);
  // An input is whole only if something stands behind it.
  const isInputWhole = isObject(input) && Object.keys(fieldsOf(state)).at(-1) !== "input";
  return {
    ...{ type, tool, callID },
    state: ended(isInputWhole ? input : LOST_INPUT, typeof output === "string" ? `${output}\n${CUT_OFF}` : LOST_RESULT),
  };
}

function mendTool(part: Fields, earlier: () => Iterable<Fields>): Mended | null {
  const state = fieldsOf(part["state"]);
  const lacksInput = !isObject(state["input"]);
  const lacksEnd = lacksResult(part);
  const clean = cleanResult(state["output"] ?? state["error"]);
  if (!lacksInput && !lacksEnd && clean === null) return null;
  let grade: Grade = "brought back";
  let mended = state;
  if (lacksEnd || clean !== null) {
    const before = find(earlier(), (fields) => {
      const { output, error } = fieldsOf(fields["state"]);
      return !lacksResult(fields) && !isInterrupted(fields) && cleanResult(output ?? error) === null;
    });
    if (!before) grade = "rebuilt";
    const name = state["output"] === undefined ? "error" : "output";
    const made = lacksEnd ? ended(state["input"], LOST_RESULT) : { ...state, [name]: clean?.content };
    mended = { ...(before ? fieldsOf(before["state"]) : made), ...(!lacksInput && { input: state["input"] }) };
  }
  if (!isObject(mended["input"])) {
    const before = find(earlier(), (fields) => {
      const { input, status } = fieldsOf(fields["state"]);
      // Before a call runs, its input is not there yet.
      return isObject(input) && status !== "pending";
    });
    if (!before) grade = "rebuilt";
    mended = { ...mended, input: before ? fieldsOf(before["state"])["input"] : LOST_INPUT };
  }
  return { value: { ...part, state: mended }, grade };
}

const ended = (input: unknown, output: string): Fields => ({
  ...{ status: "completed", input, output, title: "", metadata: {}, time: { start: 0, end: 0 } },
});

/** What is known of a message that must be made again. */
export interface MessageFrame {
  readonly role: "user" | "assistant";
  readonly at: number;
  /** The prompt before it. */
  readonly prompt: string | null;
  /** A message of the same role in the same session. */
  readonly like: Fields | null;
  readonly folder: string;
  readonly model: Fields;
}

/** A message whose own row says too little: `value` is what can be read of it. */
export function makeMessage(value: Fields, { role, at, prompt, like, folder, model }: MessageFrame): Fields {
  const { agent, mode, path } = like ?? {};
  const providerID = textIn(model["providerID"]) ?? "unknown";
  const modelID = textIn(model["modelID"] ?? model["id"]) ?? "unknown";
  if (role === "user")
    return { role, time: { created: at }, agent: agent ?? "build", model: like?.["model"] ?? { providerID, modelID } };
  return {
    ...{ parentID: textIn(value["parentID"]) ?? prompt ?? "", role, mode: mode ?? "build", agent: agent ?? "build" },
    path: path ?? { cwd: folder, root: folder },
    ...{ cost: 0, tokens: NO_TOKENS },
    ...{ modelID: like?.["modelID"] ?? modelID, providerID: like?.["providerID"] ?? providerID },
    ...{ time: { created: at, completed: at }, finish: "stop" },
    ...(value["summary"] === true && { summary: true }),
  };
}

/** The columns of a session, from what its events say of it. */
export function sessionColumns(info: Fields): Fields {
  const { time, tokens, summary, share, cost } = info;
  const { created, updated, compacting, archived } = fieldsOf(time);
  const { input, output, reasoning, cache } = fieldsOf(tokens);
  const { additions, deletions, files, diffs } = fieldsOf(summary);
  return {
    ...{
      id: info["id"],
      project_id: info["projectID"],
      workspace_id: info["workspaceID"],
      parent_id: info["parentID"],
    },
    ...{ slug: info["slug"], directory: info["directory"], path: info["path"], title: info["title"] },
    ...{ version: info["version"], share_url: fieldsOf(share)["url"], metadata: json(info["metadata"]), cost },
    ...{ summary_additions: additions, summary_deletions: deletions, summary_files: files, summary_diffs: json(diffs) },
    ...{ tokens_input: input, tokens_output: output, tokens_reasoning: reasoning },
    ...{ tokens_cache_read: fieldsOf(cache)["read"], tokens_cache_write: fieldsOf(cache)["write"] },
    ...{ revert: json(info["revert"]), permission: json(info["permission"]), agent: info["agent"] },
    ...{ model: json(info["model"]), time_created: created, time_updated: updated ?? created },
    ...{ time_compacting: compacting, time_archived: archived },
  };
}

const json = (value: unknown): string | undefined => (value === undefined ? undefined : JSON.stringify(value));
const NO_TOKENS = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };
const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function find<T>(all: Iterable<T>, isIt: (each: T) => boolean): T | undefined {
  for (const each of all) if (isIt(each)) return each;
  return undefined;
}
