import type { FileContent, Part } from "../dialect.ts";
import { type FoundCall, type FoundResult, standIns } from "../order/pairing.ts";
import { contentOf, joinedText, NONE, only, type Shape, shapeOf, shapesOf, textIn, textOf } from "../shape.ts";
import { fileOf } from "./file.ts";
import { file, printed, type Reading, type ResultContent, reasoning, text, traffic } from "./part.ts";

export const aiSdkReading = {
  role: roleOf,
  text: (message) => joinedText(contentOf(message), textIn, roleOf(message) !== "assistant"),
  calls: callsOf,
  results: resultsOf,
  approvals: (message: unknown) => responsesIn(message).map(approvalIn),
  parts: partsOf,
} satisfies Reading & { approvals: unknown };

export function roleOf(message: unknown): "system" | "user" | "assistant" | "tool" | "other" {
  const role = shapeOf(message)?.["role"];
  return role === "system" || role === "user" || role === "assistant" || role === "tool" ? role : "other";
}

export const isCall = ({ type }: Shape): boolean => type === "tool-call";
export const isResult = ({ type }: Shape): boolean => type === "tool-result";
export const isRequest = ({ type }: Shape): boolean => type === "tool-approval-request";
const isOpenRequest = (part: Shape): boolean => isRequest(part) && part["isAutomatic"] !== true;
const isResponse = ({ type }: Shape): boolean => type === "tool-approval-response";

function callsOf(message: unknown): FoundCall[] {
  if (roleOf(message) !== "assistant") return [];
  const parts = shapesOf(shapeOf(message)?.["content"]);
  // A request that was answered automatically waits for nobody.
  const requests = only(parts, isOpenRequest);
  const asked =
    requests.length > 0 ? new Map(requests.map((part) => [part["toolCallId"], textOf(part["approvalId"])])) : null;
  const found: FoundCall[] = [];
  let nextStandIn: ReturnType<typeof standIns> | null = null;
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!;
    if (!isCall(part)) continue;
    const id = textOf(part["toolCallId"]);
    const name = textOf(part["toolName"]);
    const by = part["providerExecuted"] === true ? "provider" : "agent";
    if (!id) nextStandIn ??= standIns();
    const call = { id: id || nextStandIn!(name), name, input: part["input"], by } as const;
    const approval = asked?.get(part["toolCallId"]);
    const awaiting = approval === undefined ? null : ({ awaiting: true, approval } as const);
    found.push(id && !awaiting ? call : { ...call, ...awaiting, ...(id ? null : { idless: true }) });
  }
  return found;
}

export function resultParts(message: unknown): readonly Shape[] {
  const role = roleOf(message);
  return role === "tool" || role === "assistant" ? only(shapesOf(shapeOf(message)?.["content"]), isResult) : NONE;
}

function resultsOf(message: unknown): FoundResult[] {
  return resultParts(message).map(foundResult);
}

function foundResult(part: Shape): FoundResult {
  const call = textOf(part["toolCallId"]);
  const name = textOf(part["toolName"]);
  if (!call) return name ? { call, idless: true, name } : { call, idless: true };
  return name ? { call, name } : { call };
}

/** A person's decisions. */
export function responsesIn(message: unknown): readonly Shape[] {
  return roleOf(message) === "tool" ? only(shapesOf(shapeOf(message)?.["content"]), isResponse) : NONE;
}

function approvalIn(part: Shape): { approval: string; approved: boolean } {
  return { approval: textOf(part["approvalId"]), approved: part["approved"] === true };
}

function partsOf(message: unknown): Part[] {
  const next = traffic(callsOf(message), resultsOf(message));
  const isTool = roleOf(message) === "tool";
  return contentOf(message).flatMap((part): Part[] => {
    if (isCall(part)) return next.call();
    if (isResult(part)) return next.result(readResult(shapeOf(part["output"]) ?? {}));
    if (isResponse(part)) {
      const reason = textOf(part["reason"]);
      return isTool ? [{ type: "approval", ...approvalIn(part), ...(reason ? { reason } : {}) }] : [];
    }
    switch (part["type"]) {
      case "reasoning":
        return reasoning(textOf(part["text"]));
      case "image":
        return file(fileOf(part["image"], part["mediaType"] ?? "image"));
      case "file":
        return file(fileOf(part["data"], part["mediaType"], part["filename"]));
      default:
        return text(textIn(part) ?? "");
    }
  });
}

function readResult({ type, value, reason }: Shape): ResultContent {
  if (type === "execution-denied") return { text: textOf(reason) || "Denied.", failed: true, denied: true };
  const failed = type === "error-text" || type === "error-json";
  if (type !== "content") {
    return typeof value === "string" ? { text: value, failed } : { text: printed(value), json: value, failed };
  }
  const parts = shapesOf(value);
  const texts = parts.flatMap((part) => textIn(part) ?? []);
  return { text: texts.join("\n"), failed: false, files: parts.flatMap(resultFile) };
}

function resultFile(part: Shape): FileContent[] {
  const kind = textOf(part["type"]);
  if (!/^(file|image|media)/.test(kind)) return [];
  const type = part["mediaType"] ?? (kind.startsWith("image") ? "image" : undefined);
  return [fileOf(part["data"] ?? part["url"], type, part["filename"])];
}
