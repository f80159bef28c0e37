import {
  asSchema,
  convertToModelMessages,
  isToolUIPart,
  type ModelMessage,
  type ToolSet,
  type UIMessage,
  validateUIMessages,
} from "ai";
import type { Metadata } from "holdfast";
import { isClientTool, ownTool } from "../content.ts";
import { invalid } from "./problem.ts";

const ID_CHARS_MAX = 200;

/** A prompt, as it is recorded. */
export interface Prompt {
  readonly id: string;
  readonly message: ModelMessage;
  readonly metadata: Metadata | null;
  /** To tell a retry from another message with the same id. */
  readonly content: string;
}

/** An answer to something that a turn waits for. */
export interface PageAnswer {
  readonly kind: "approval" | "output";
  /** The approval's id, or the call's. */
  readonly id: string;
  readonly toolName: string;
  readonly answer:
    | { readonly approved: boolean; readonly reason?: string }
    | { readonly value: unknown }
    | { readonly error: string };
  readonly content: string;
}

/**
 * A user's message from a browser. Only its text and files are taken, because everything else in it would be the
 * browser's word for something: options for the provider, or members that hide a message.
 */
export async function promptFrom(given: UIMessage, acceptsFileAt?: (url: URL) => Accepts): Promise<Prompt> {
  const parts: UIMessage["parts"] = [];
  for (const part of given.parts) {
    if (part.type === "text" && part.text !== "") parts.push({ type: "text", text: part.text });
    if (part.type !== "file") continue;
    const { mediaType, filename, url } = part;
    await checkFile(url, acceptsFileAt);
    parts.push({ type: "file", mediaType, url, ...(filename === undefined ? {} : { filename }) });
  }
  if (parts.length === 0) throw invalid("the message has neither text nor files");
  const [message] = await convertToModelMessages([{ role: "user", parts }]);
  return { id: given.id, message: message!, metadata: metadataFrom(given.metadata), content: JSON.stringify(parts) };
}

type Accepts = boolean | Promise<boolean>;

/**
 * A file must be in the message itself. One at a web address can change or disappear, and then every later request of
 * the chat fails: so the application says which addresses it knows. Throws a refusal.
 */
async function checkFile(url: string, acceptsFileAt: ((url: URL) => Accepts) | undefined): Promise<void> {
  const parsed = URL.parse(url);
  if (parsed?.protocol === "data:") return;
  const isWeb = parsed?.protocol === "https:" || parsed?.protocol === "http:";
  if (isWeb && acceptsFileAt && (await acceptsFileAt(parsed)) === true) return;
  throw invalid(
    isWeb ? "a file must be sent as a data URL: this web address is not accepted" : "a file must be a data URL",
  );
}

/** Without the members that decide who sees a message. */
function metadataFrom(given: unknown): Metadata | null {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return null;
  const { hiddenFromModel: _, hiddenFromUser: __, ...rest } = given as Record<string, unknown>;
  return Object.keys(rest).length > 0 ? (rest as Metadata) : null;
}

/**
 * The answers in an assistant's message. The rest of it is what the page shows, and counts for nothing. Servers repeat
 * call ids (R9), and then the last call is the one that may be waiting.
 */
export function answersFrom({ parts }: UIMessage, tools: ToolSet | undefined): PageAnswer[] {
  const calls = new Map(parts.filter(isToolUIPart).map((part) => [part.toolCallId, part]));
  return [...calls.values()].flatMap((part): PageAnswer[] => {
    const toolName = part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
    if (part.state === "approval-responded") {
      const { id, approved, reason } = part.approval;
      const answer = { approved, ...(reason === undefined ? {} : { reason }) };
      return [{ kind: "approval", id, toolName, answer, content: String(approved) }];
    }
    if (!isClientTool(tools, toolName)) return [];
    if (part.state === "output-available")
      return [output(part.toolCallId, toolName, { value: part.output ?? null }, JSON.stringify([part.output ?? null]))];
    if (part.state === "output-error")
      return [output(part.toolCallId, toolName, { error: part.errorText }, `error ${part.errorText}`)];
    return [];
  });
}

function output(id: string, toolName: string, answer: PageAnswer["answer"], content: string): PageAnswer {
  return { kind: "output", id, toolName, answer, content };
}

/** The output as the tool's schema sees it. Throws a refusal if it does not fit. */
export async function checkedOutput(tools: ToolSet | undefined, name: string, value: unknown): Promise<unknown> {
  const schema = ownTool(tools, name)?.outputSchema;
  if (schema == null) return value;
  const result = await asSchema(schema as Parameters<typeof asSchema>[0]).validate?.(value);
  if (result && !result.success) throw invalid(`the output of ${name} does not fit its schema`);
  return result ? result.value : value;
}

/** The newest message of a request's body. Throws a refusal if it is not one that a page can send. */
export async function newestMessage(body: Readonly<Record<string, unknown>>): Promise<UIMessage> {
  const { message, messages } = body;
  const given = message ?? (Array.isArray(messages) ? messages.at(-1) : undefined);
  if (given === undefined) throw invalid("it has no message");
  const [found] = await validateUIMessages({ messages: [given] }).catch(() => []);
  if (!found) throw invalid("its newest message is not a UI message");
  const { id, role } = found;
  if (typeof id !== "string" || id === "" || id.length > ID_CHARS_MAX || !id.isWellFormed())
    throw invalid(`a message needs an id of 1 to ${ID_CHARS_MAX} characters`);
  if (role !== "user" && role !== "assistant") throw invalid("a page sends only the messages of its user");
  return found;
}
