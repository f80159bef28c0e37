import type { ModelMessage, ToolSet, UIMessage } from "ai";
import type { Interruption, Reading } from "holdfast";
import { type UIMessagesOptions, uiMessages } from "../ui-messages.ts";
import type { ChatState, UnfinishedTool } from "./surface.ts";
import { type Waits, waitsOf } from "./waits.ts";

/** Who stopped a turn that a person stopped. */
export const BY_USER = "the user";

export type View = Pick<Reading<ModelMessage>, "id" | "entries" | "interruption" | "queue" | "running">;

/** What a page shows, as the journal has it. */
export function stateOf(view: View, options: UIMessagesOptions): ChatState {
  const messages = [...uiMessages(view, options), ...queuedIn(view, options)];
  const { interruption, running, queue } = view;
  if (running !== null) return { messages, status: "running", interrupted: null };
  const broken = interruption && brokenOff(interruption);
  if (interruption && isWaiting(interruption, waitsOf(view, options.tools)))
    return { messages, status: "waiting", interrupted: broken };
  if (broken) return { messages, status: "interrupted", interrupted: broken };
  // A prompt whose turn never came: only a killed process leaves one.
  if (queue.length > 0) return { messages, status: "interrupted", interrupted: { reason: "killed", tools: [] } };
  return { messages, status: "ready", interrupted: null };
}

/**
 * Calls wait for the page. Also if the process was killed before it recorded that: a client-side tool runs on the page,
 * so only the page can go on.
 */
export function isWaiting(interruption: Interruption<ModelMessage>, { approvals, outputs }: Waits): boolean {
  return !isStopped(interruption) && approvals.size + outputs.size > 0;
}

/** The last turn cannot go on by itself: it is complete, a person stopped it, or it waits for the page. */
export function isOver(view: View, tools: ToolSet | undefined): boolean {
  const { interruption } = view;
  if (!interruption || interruption.answered || isStopped(interruption)) return true;
  return isWaiting(interruption, waitsOf(view, tools));
}

/** A person stopped it, and knows. */
export function isStopped({ how }: Pick<Interruption<ModelMessage>, "how">): boolean {
  return how.kind === "aborted" && how.by === BY_USER;
}

function brokenOff({ how, answered, calls }: Interruption<ModelMessage>): ChatState["interrupted"] {
  if (answered || how.kind === "suspended" || isStopped({ how })) return null;
  const reason = how.kind === "failed" ? "failed" : how.kind === "aborted" ? "stopped" : "killed";
  const tools = calls.flatMap(({ id: toolCallId, name: toolName, input, state }): UnfinishedTool[] =>
    state === "outcome-unknown" || state === "never-started" || state === "unrecorded"
      ? [{ toolCallId, toolName, input, state }]
      : [],
  );
  return { reason, tools };
}

/** Prompts that wait for their turn. */
function queuedIn({ id, queue }: View, options: UIMessagesOptions): UIMessage[] {
  const entries = queue.map(({ id: prompt, prompt: message }, n) => ({
    id: prompt,
    message,
    turn: -1 - n,
    metadata: {},
  }));
  return uiMessages({ id, entries: entries as never, interruption: null }, options);
}
