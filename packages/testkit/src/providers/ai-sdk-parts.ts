import { type Add, isNonEmpty, isObject, type Json, rowOf } from "./violation.ts";

export type AiSdkRule = "ai-sdk-1" | "ai-sdk-2" | "ai-sdk-3" | "ai-sdk-shape" | "ai-sdk-unicode";

export interface SdkPart {
  readonly at: string;
  readonly type: string;
  readonly part: Json;
}

export interface SdkMessage {
  readonly at: string;
  readonly role: string;
  readonly message: Json;
  readonly parts: readonly SdkPart[];
}

const PARTS: Record<string, readonly string[]> = {
  user: ["text", "image", "file"],
  assistant: [
    "text",
    "custom",
    "file",
    "reasoning",
    "reasoning-file",
    "tool-call",
    "tool-result",
    "tool-approval-request",
  ],
  tool: ["tool-result", "tool-approval-response"],
};

const OUTPUT_VALUES: Record<string, (value: unknown) => boolean> = {
  text: (value) => typeof value === "string",
  "error-text": (value) => typeof value === "string",
  json: (value) => value !== undefined,
  "error-json": (value) => value !== undefined,
  "execution-denied": () => true,
  content: (value) => Array.isArray(value) && value.every((part) => isObject(part) && isNonEmpty(part["type"])),
};

/** Messages with the paths of their parts; a string counts as one text part. */
export function sdkMessages(list: readonly unknown[]): SdkMessage[] {
  return list.map((value, i) => {
    const at = `messages.${i}`;
    const message = isObject(value) ? value : {};
    const content = message["content"];
    const parts =
      typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? content : [];
    return {
      at,
      role: String(message["role"]),
      message,
      parts: parts.map((part, j) => ({
        at: typeof content === "string" ? `${at}.content` : `${at}.content.${j}`,
        type: isObject(part) ? String(part["type"]) : "",
        part: isObject(part) ? part : {},
      })),
    };
  });
}

/** `modelMessageSchema`, and the empty parts of rule 2. */
export function checkMessages(messages: readonly SdkMessage[], systemMessages: boolean, add: Add<AiSdkRule>): void {
  for (const { at, role, message, parts } of messages) {
    const content = message["content"];
    if (role === "system") {
      if (!systemMessages) add("ai-sdk-shape", at, "system messages are not allowed here: use the instructions option");
      if (typeof content !== "string") add("ai-sdk-shape", `${at}.content`, "a string");
      continue;
    }
    const allowed = rowOf(PARTS, role);
    if (allowed === undefined) {
      add("ai-sdk-shape", `${at}.role`, `${JSON.stringify(message["role"])} is not a role`);
      continue;
    }
    if (!Array.isArray(content) && (role === "tool" || typeof content !== "string")) {
      add("ai-sdk-shape", `${at}.content`, role === "tool" ? "a list of parts" : "a string or a list of parts");
    } else if (content.length === 0) add("ai-sdk-2", `${at}.content`, "empty content");
    for (const part of parts) {
      if (!allowed.includes(part.type)) add("ai-sdk-shape", part.at, `a ${role} message holds no ${part.type} part`);
      else checkPart(part, add);
    }
  }
}

function checkPart({ at, type, part }: SdkPart, add: Add<AiSdkRule>): void {
  if (type === "text") {
    if (typeof part["text"] !== "string") add("ai-sdk-shape", `${at}.text`, "a string");
    else if (part["text"].trim() === "") add("ai-sdk-2", at, "text is empty or only white space");
  } else if (type === "reasoning" && typeof part["text"] !== "string") add("ai-sdk-shape", `${at}.text`, "a string");
  else if (type === "tool-call" || type === "tool-result") {
    if (!isNonEmpty(part["toolCallId"])) add("ai-sdk-shape", `${at}.toolCallId`, "a string");
    if (!isNonEmpty(part["toolName"])) add("ai-sdk-shape", `${at}.toolName`, "a string");
    // The schema accepts anything; providers require an object, and half a JSON text is not one.
    if (type === "tool-call" && !isObject(part["input"])) add("ai-sdk-2", `${at}.input`, "input is not an object");
    if (type === "tool-result") checkOutput(part["output"], at, add);
  } else if (type === "tool-approval-request" || type === "tool-approval-response") {
    if (!isNonEmpty(part["approvalId"])) add("ai-sdk-shape", `${at}.approvalId`, "a string");
    if (type === "tool-approval-request" && !isNonEmpty(part["toolCallId"])) {
      add("ai-sdk-shape", `${at}.toolCallId`, "a string");
    }
    if (type === "tool-approval-response" && typeof part["approved"] !== "boolean") {
      add("ai-sdk-shape", `${at}.approved`, "a boolean");
    }
  } else if (type === "file" || type === "image" || type === "reasoning-file") {
    const data = part["data"] ?? part["image"];
    if (data === undefined || data === "") add("ai-sdk-shape", at, "a file has data");
    if (type !== "image" && !isNonEmpty(part["mediaType"])) add("ai-sdk-shape", `${at}.mediaType`, "a string");
  }
}

function checkOutput(output: unknown, at: string, add: Add<AiSdkRule>): void {
  const fits = isObject(output) ? rowOf(OUTPUT_VALUES, output["type"]) : undefined;
  if (!isObject(output) || fits === undefined) {
    add("ai-sdk-shape", `${at}.output`, `an output is of type ${Object.keys(OUTPUT_VALUES).join(", ")}`);
  } else if (!fits(output["value"]))
    add("ai-sdk-shape", `${at}.output.value`, `no value of a ${output["type"]} output`);
}
