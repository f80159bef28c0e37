import { createHash, createHmac } from "node:crypto";
import { asSchema, generateId, type ModelMessage, type ToolSet } from "ai";
import { type CallPart, type Decision, inputOf, ownTool } from "./content.ts";
import { mutableCopy } from "./mutable-copy.ts";

type Status = { readonly type: string; readonly reason?: string | undefined };

/** What an approval can depend on; `prepareStep` can change the contexts. */
export interface Scope {
  readonly tools: ToolSet | undefined;
  readonly toolsContext: unknown;
  readonly runtimeContext: unknown;
  readonly messages: ModelMessage[];
}

interface Configuration {
  readonly tools: ToolSet | undefined;
  /** A function for all tools, or a status or function for each. */
  readonly toolApproval: unknown;
  readonly secret: string | Uint8Array | undefined;
  readonly newId: (() => string) | undefined;
}

type Ask = (input: unknown, options: Record<string, unknown>) => unknown;

/**
 * The approvals of one run. The SDK decides only after it has returned the response (`generateText`), or while it
 * streams (`streamText`); by then another tool of the same response may be running. But the unit that records a call
 * must also record that it is waiting (R7), or a crash in between makes it look free to run. So we decide here, once,
 * and give the SDK the same decision and the same id when it asks.
 */
export class Approvals {
  readonly #configuration: Configuration;
  readonly #decided = new Map<string, Promise<Status>>();
  readonly #ids = new Map<string, string>();
  #nextId: string | null = null;

  constructor(configuration: Configuration) {
    this.#configuration = configuration;
  }

  /** These settings never ask: leave the SDK as it is. */
  static isNeeded(tools: ToolSet | undefined, toolApproval: unknown): boolean {
    return toolApproval != null || Object.values(tools ?? {}).some((tool) => tool.needsApproval != null);
  }

  /** A new response: call ids may repeat (R9). */
  begin(): void {
    this.#decided.clear();
    this.#ids.clear();
    this.#nextId = null;
  }

  /** The SDK's `toolApproval`. */
  readonly resolve = async (options: Scope & { readonly toolCall: CallPart }): Promise<Status> => {
    const { toolCall } = options;
    const status = await this.#status(toolCall, options);
    // The SDK makes an id at once for each call that is not "not-applicable", and only then.
    if (status.type !== "not-applicable") this.#nextId = this.#idOf(toolCall.toolCallId);
    return status;
  };

  /** The SDK's `generateId`. */
  readonly newId = (): string => {
    const id = this.#nextId ?? this.#madeId();
    this.#nextId = null;
    return id;
  };

  /** Decides every call of a response that needs an approval. Throws what the application's own function throws. */
  async decisions(calls: readonly CallPart[], scope: Scope): Promise<Map<string, Decision>> {
    const found = new Map<string, Decision>();
    for (const call of calls) {
      if (call.invalid || ownTool(scope.tools, call.toolName) === undefined) continue;
      const { type, reason } = await this.#status(call, scope);
      if (type !== "user-approval" && type !== "approved" && type !== "denied") continue;
      const approvalId = this.#idOf(call.toolCallId);
      const { secret } = this.#configuration;
      const signature = secret === undefined ? undefined : sign(secret, approvalId, call);
      found.set(call.toolCallId, { approvalId, status: type, reason, signature });
    }
    return found;
  }

  #status(call: CallPart, scope: Scope): Promise<Status> {
    const known = this.#decided.get(call.toolCallId);
    if (known) return known;
    const status = this.#ask(call, scope);
    this.#decided.set(call.toolCallId, status);
    return status;
  }

  /**
   * As the SDK's `resolveToolApproval` does: first the settings, then the tool. A rule gets a copy of the input, so it
   * cannot change it (R19).
   */
  async #ask(given: CallPart, scope: Scope): Promise<Status> {
    const toolCall = { ...given, input: mutableCopy(given.input) };
    const { toolApproval, tools } = this.#configuration;
    const { toolsContext, runtimeContext, messages } = scope;
    if (typeof toolApproval === "function") {
      return normal(await toolApproval({ toolCall, tools, toolsContext, runtimeContext, messages }));
    }
    const { toolName, toolCallId, input } = toolCall;
    const tool = ownTool(tools, toolName);
    const context = (): Promise<unknown> => contextOf(tool, toolName, { toolsContext });
    const all = (toolApproval ?? {}) as Record<string, unknown>;
    const own = Object.hasOwn(all, toolName) ? all[toolName] : undefined;
    if (own != null) {
      if (typeof own !== "function") return normal(own);
      return normal(await (own as Ask)(input, { toolCallId, messages, toolContext: await context(), runtimeContext }));
    }
    const needs = tool?.needsApproval;
    const isNeeded =
      typeof needs === "function"
        ? await (needs as Ask)(input, { toolCallId, messages, context: await context() })
        : needs === true;
    return { type: isNeeded ? "user-approval" : "not-applicable" };
  }

  #idOf(toolCallId: string): string {
    const id = this.#ids.get(toolCallId) ?? this.#madeId();
    this.#ids.set(toolCallId, id);
    return id;
  }

  #madeId(): string {
    return (this.#configuration.newId ?? generateId)();
  }
}

function normal(status: unknown): Status {
  if (status === undefined) return { type: "not-applicable" };
  return typeof status === "string" ? { type: status } : (status as Status);
}

/** The context of a tool, as the SDK finds it. Throws if it does not fit. */
export async function contextOf(
  tool: ToolSet[string] | undefined,
  name: string,
  { toolsContext }: { readonly toolsContext?: unknown },
): Promise<unknown> {
  const all = (toolsContext ?? {}) as Record<string, unknown>;
  const value = Object.hasOwn(all, name) ? all[name] : undefined;
  const schema = tool?.contextSchema;
  if (schema == null) return value;
  const { validate } = asSchema(schema as Parameters<typeof asSchema>[0]);
  const result = await validate?.(value);
  if (result && !result.success) throw result.error;
  return result ? result.value : value;
}

/**
 * The SDK checks this signature when the approved call comes back (`experimental_toolApprovalSecret`), but does not
 * export how to make it.
 */
function sign(secret: string | Uint8Array, approvalId: string, { toolCallId, toolName, input }: CallPart): string {
  // As recorded, because that is what comes back.
  const digest = createHash("sha256")
    .update(canonical(inputOf(input)))
    .digest("base64url");
  const payload = JSON.stringify(["ai-sdk-tool-approval-v1", approvalId, toolCallId, toolName, digest]);
  return createHmac("sha256", secret).update(payload).digest("base64url");
}

function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(JSON.stringify(value));
  if (Array.isArray(value)) return `[${value.map((one) => (one === undefined ? "null" : canonical(one))).join(",")}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical((value as Record<string, unknown>)[key])}`).join(",")}}`;
}
