import { type ModelMessage, type ToolResultPart, type ToolSet, toUIMessageChunk, type UIMessage } from "ai";
import { dialects, type Entry, type Reading } from "holdfast";
import { ownTool } from "./content.ts";
import { mutableCopy } from "./mutable-copy.ts";

type Part = UIMessage["parts"][number];
type Content = Exclude<ModelMessage["content"], string>[number];
type ContentOf<T extends Content["type"]> = Extract<Content, { type: T }>;

/** Like the options of the SDK's `toUIMessageStream`: pass the same to both, and a reloaded page looks as before. */
export interface UIMessagesOptions {
  /**
   * Calls of dynamic tools, and of tools that are not in this set, become `dynamic-tool` parts. Without it, all become
   * `tool-<name>`.
   */
  readonly tools?: ToolSet | undefined;
  /** What the browser sees of a tool's error. Default: "An error occurred." */
  readonly onError?: ((error: unknown) => string) | undefined;
  /** Default: true. */
  readonly sendReasoning?: boolean | undefined;
}

/**
 * The conversation as a page shows it: one message per prompt, with the prompt's id, and one for the answer, with all
 * its steps. The answer of a turn has the id `<session id>.<turn number>`, which survives restarts: pass it to
 * `toUIMessageStream` as `generateMessageId`.
 *
 * System messages, messages that Holdfast synthesized for the model, and entries with `hiddenFromUser` are left out.
 * Where the model sees a replacement, the page gets the original. Takes an open session, or the result of `store.read`.
 */
export function uiMessages(
  reading: Pick<Reading<ModelMessage>, "id" | "entries" | "interruption">,
  options: UIMessagesOptions = {},
): UIMessage[] {
  const page = new Page(reading.id, options);
  for (const entry of reading.entries) if (isToShow(entry)) page.add(entry);
  const { interruption } = reading;
  // Text that is in no message yet: it was shown, and is shown again until the answer is made again.
  if (interruption?.draft && interruption.draft.text !== "") page.addWords(interruption.turn, interruption.draft.text);
  return page.messages.map(mutableCopy);
}

/** Skip what damage, or another program, left in place of a message: the rest can be shown. */
function isToShow({ message, metadata }: Entry<ModelMessage>): boolean {
  return metadata.hiddenFromUser !== true && dialects["ai-sdk"].check(message as never) === null;
}

class Page {
  readonly messages: UIMessage[] = [];
  readonly #session: string;
  readonly #options: UIMessagesOptions;
  readonly #calls = new Calls();
  /** The answer being built; null before the first text of a turn. */
  #answer: { readonly turn: number; readonly message: UIMessage; step: string | null } | null = null;
  readonly #ids = new Set<string>();

  constructor(session: string, options: UIMessagesOptions) {
    this.#session = session;
    this.#options = options;
  }

  add(entry: Entry<ModelMessage>): void {
    const { message, synthetic, incomplete } = entry;
    switch (message.role) {
      case "user":
        if (synthetic === undefined) this.#prompt(entry);
        break;
      case "assistant":
        if (synthetic === undefined || incomplete) this.#say(entry);
        break;
      case "tool":
        for (const part of message.content) this.#hear(part, entry);
        break;
    }
  }

  addWords(turn: number, text: string): void {
    this.#partsOf(turn, null).push({ type: "text", text });
  }

  #prompt(entry: Entry<ModelMessage>): void {
    const { id, turn } = entry;
    const parts = userParts(entry.message);
    // Steering: it appears inside the answer, where the model saw it. (Messages from an array have no turns.)
    if (this.#answer?.turn === turn && turn > 0) {
      this.#answer.message.parts.push({ type: "steering-message", id, parts } as Part);
      return;
    }
    this.#answer = null;
    const metadata = metadataOf(entry);
    this.messages.push({ id: this.#freeId(id), role: "user", ...(metadata ? { metadata } : {}), parts });
  }

  #say(entry: Entry<ModelMessage>): void {
    const { id, turn, step, message } = entry;
    const parts: Part[] = [];
    let index = 0;
    for (const part of contentOf(message)) {
      if (part.type === "tool-call" && typeof part.toolCallId === "string") {
        const made = this.#callPart(part);
        this.#calls.add(id, index++, made);
        parts.push(made as Part);
      } else if (part.type === "tool-result" || part.type === "tool-approval-request") this.#hear(part, entry);
      else parts.push(...this.#shown(part));
    }
    if (parts.length === 0) return;
    this.#partsOf(turn, step).push(...parts);
    const { message: answer } = this.#answer!;
    const metadata = metadataOf(entry);
    if (metadata) answer.metadata = { ...(answer.metadata as object | undefined), ...metadata };
  }

  /** Where the parts of this answer go; a mark starts each new step. */
  #partsOf(turn: number, step: string | null): Part[] {
    if (this.#answer?.turn !== turn) {
      const message: UIMessage = { id: this.#freeId(`${this.#session}.${turn}`), role: "assistant", parts: [] };
      this.#answer = { turn, message, step: null };
      this.messages.push(message);
    }
    const { message } = this.#answer;
    if (this.#answer.step !== step || step === null) message.parts.push({ type: "step-start" });
    this.#answer.step = step;
    return message.parts;
  }

  #shown(part: Content): Part[] {
    const { sendReasoning = true } = this.#options;
    const metadata =
      "providerOptions" in part && part.providerOptions ? { providerMetadata: part.providerOptions } : {};
    switch (part.type) {
      case "text":
        return [{ type: "text", text: part.text, state: "done", ...metadata } as Part];
      case "reasoning":
        return sendReasoning ? [{ type: "reasoning", text: part.text, state: "done", ...metadata } as Part] : [];
      case "custom":
        return [{ type: "custom", kind: part.kind, ...metadata } as Part];
      case "file":
        return userParts({ role: "user", content: [part as ContentOf<"file">] });
      case "reasoning-file": {
        if (!sendReasoning) return [];
        const { data, mediaType, providerOptions } = part;
        const file = { type: "file" as const, data, mediaType, ...(providerOptions ? { providerOptions } : {}) };
        return userParts({ role: "user", content: [file] as never }).map(
          (one) => ({ ...one, type: part.type }) as Part,
        );
      }
      default:
        return [];
    }
  }

  #callPart({ toolCallId, toolName, input, providerExecuted, providerOptions }: ContentOf<"tool-call">): CallPart {
    const { tools } = this.#options;
    const tool = ownTool(tools, toolName);
    const isDynamic = tools !== undefined && (tool === undefined || tool.type === "dynamic");
    return {
      ...(isDynamic ? { type: "dynamic-tool", toolName } : { type: `tool-${toolName}` }),
      toolCallId,
      state: "input-available",
      input,
      ...(providerExecuted === undefined ? {} : { providerExecuted }),
      ...(providerOptions ? { callProviderMetadata: providerOptions } : {}),
    };
  }

  /** The outcome of a call. */
  #hear(part: Content, entry: Entry<ModelMessage>): void {
    switch (part.type) {
      case "tool-approval-request": {
        const {
          approvalId: id,
          toolCallId,
          isAutomatic,
          reason,
          signature,
        } = part as ContentOf<"tool-approval-request"> & ApprovalPart;
        const call = this.#calls.open(toolCallId);
        if (!call) return;
        this.#calls.ask(id, call);
        call.state = "approval-requested";
        call.approval = {
          id,
          ...("inputSchemaInput" in part ? { inputSchemaInput: part.inputSchemaInput } : {}),
          ...(reason == null ? {} : { requestReason: reason }),
          ...(isAutomatic === true ? { isAutomatic } : {}),
          ...(signature == null ? {} : { signature }),
        };
        return;
      }
      case "tool-approval-response": {
        const { approvalId, approved, reason } = part;
        const call = this.#calls.asked(approvalId);
        if (!call) return;
        if (call.state === "approval-requested") call.state = "approval-responded";
        call.approval = { ...call.approval!, approved, ...(reason == null ? {} : { reason }) };
        return;
      }
      case "tool-result": {
        const call = (entry.call && this.#calls.at(entry.call)) ?? this.#calls.open(part.toolCallId);
        if (call && this.#calls.close(call, entry.synthetic !== undefined)) this.#settle(call, part, entry);
      }
    }
  }

  #settle(call: CallPart, { output, providerOptions }: ContentOf<"tool-result">, { value }: Entry<ModelMessage>): void {
    delete call.errorText;
    if (typeof output !== "object" || output === null) {
      call.state = "output-available";
      call.output = output;
      return;
    }
    if (providerOptions) call.resultProviderMetadata = providerOptions;
    const { approval } = call;
    const isDenied = output.type === "execution-denied" || output.type === "error-text" || output.type === "error-json";
    // Approval was requested, and nobody gave it.
    if (approval && approval.approved !== true && isDenied) {
      const reason = approval.reason ?? denialIn(output);
      call.state = "output-denied";
      call.approval = { ...approval, approved: false, ...(reason === undefined ? {} : { reason }) };
      return;
    }
    // A result without an approval (the application gave it) needs none.
    if (approval && approval.approved !== true) delete call.approval;
    if (!isDenied) {
      call.state = "output-available";
      call.output = value ?? output.value;
      return;
    }
    const { onError = () => "An error occurred." } = this.#options;
    const error = output.type === "execution-denied" ? (output.reason ?? "") : output.value;
    call.state = "output-error";
    // As the SDK does: the error of a provider's tool goes back to the provider unchanged.
    call.errorText = !call.providerExecuted
      ? onError(error)
      : typeof error === "string"
        ? error
        : JSON.stringify(error);
  }

  #freeId(wanted: string): string {
    let id = wanted;
    for (let n = 2; this.#ids.has(id); n++) id = `${wanted}.${n}`;
    this.#ids.add(id);
    return id;
  }
}

/** A tool part while its state changes. */
interface CallPart {
  readonly type: string;
  readonly toolCallId: string;
  readonly providerExecuted?: boolean;
  state: string;
  output?: unknown;
  errorText?: string;
  resultProviderMetadata?: unknown;
  approval?: { readonly id: string; readonly approved?: boolean; readonly reason?: string };
  readonly [member: string]: unknown;
}

interface ApprovalPart {
  readonly reason?: string;
  readonly signature?: string;
}

/** The calls of the conversation: servers repeat ids (R9). */
class Calls {
  readonly #byPlace = new Map<string, CallPart>();
  readonly #byApproval = new Map<string, CallPart>();
  /** Calls without a result, the newest last. */
  #open: CallPart[] = [];
  /** Calls whose result was synthesized. */
  readonly #madeUp = new Set<CallPart>();

  add(message: string, index: number, call: CallPart): void {
    this.#byPlace.set(`${index} ${message}`, call);
    this.#open.push(call);
  }

  at({ message, index }: NonNullable<Entry<ModelMessage>["call"]>): CallPart | undefined {
    return this.#byPlace.get(`${index} ${message}`);
  }

  open(toolCallId: string): CallPart | undefined {
    return this.#open.findLast((call) => call.toolCallId === toolCallId);
  }

  ask(approvalId: string, call: CallPart): void {
    this.#byApproval.set(approvalId, call);
  }

  asked(approvalId: string): CallPart | undefined {
    return this.#byApproval.get(approvalId);
  }

  /** Whether the result counts: the first one does. A synthesized result gives way to the tool's own. */
  close(call: CallPart, isMadeUp: boolean): boolean {
    const isOpen = this.#open.includes(call);
    if (!isOpen && (isMadeUp || !this.#madeUp.delete(call))) return false;
    this.#open = this.#open.filter((one) => one !== call);
    if (isMadeUp) this.#madeUp.add(call);
    return true;
  }
}

function contentOf({ content }: ModelMessage): readonly Content[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/**
 * As the SDK shows a user's message; it exports that for only one kind of part. A part it cannot show (a file without
 * data) is left out.
 */
function userParts({ content }: ModelMessage): Part[] {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return parts.flatMap((part) => {
    try {
      const message = { role: "user", content: [part] };
      const chunk = toUIMessageChunk({ type: "steering-message", id: "", message } as never);
      return (chunk as unknown as { readonly parts: Part[] }).parts;
    } catch {
      return [];
    }
  });
}

function metadataOf({ metadata }: Entry<ModelMessage>): Record<string, unknown> | null {
  const { hiddenFromModel: _, hiddenFromUser: __, ...rest } = metadata;
  return Object.keys(rest).length > 0 ? rest : null;
}

function denialIn(output: ToolResultPart["output"]): string | undefined {
  if (output.type === "execution-denied") return output.reason;
  return output.type === "error-text" ? output.value : undefined;
}
