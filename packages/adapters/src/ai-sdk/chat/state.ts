import type { ModelMessage, ToolSet, UIMessage } from "ai";
import { accountOf, type Reading } from "holdfast";
import { type UIMessagesOptions, uiMessages } from "../ui-messages.ts";
import type { ChatState, UnfinishedTool } from "./surface.ts";
import { chatPolicy, cutOffCalls, isHandedOver, isStopped, waitsOf } from "./waits.ts";

export type View = Reading<ModelMessage>;

/** What a page shows, as the journal has it. */
export function stateOf(view: View, options: UIMessagesOptions): ChatState {
  const messages = [...shownIn(view, options), ...queuedIn(view, options)];
  const { state, queue } = view;
  if (state === "running" || isContinued(view, options.tools))
    return { messages, status: "running", interrupted: null };
  const broken = brokenOff(view, options.tools);
  if (isWaiting(view, options.tools)) return { messages, status: "waiting", interrupted: broken };
  if (broken) return { messages, status: "interrupted", interrupted: broken };
  // A prompt whose turn never came: only a killed process leaves one.
  if (queue.length > 0) return { messages, status: "interrupted", interrupted: { reason: "killed", tools: [] } };
  return { messages, status: "ready", interrupted: null };
}

/**
 * What a page shows of the conversation. A call that was cut off has the outcome that the model would be told: as long
 * as a call is open, `useChat` sends no answer to the others.
 */
export function shownIn(view: View, options: UIMessagesOptions): UIMessage[] {
  const { id, entries, messages, interruption } = view;
  const calls = cutOffCalls(view, options.tools);
  if (calls.length === 0) return uiMessages(view, options);
  const told = messages.flatMap(({ role, content }) => (role === "tool" ? content : []));
  const outcomes = calls.flatMap(({ id: call, state }) => {
    const part = told.findLast((one) => one.type === "tool-result" && one.toolCallId === call);
    return part ? [{ message: { role: "tool", content: [part] }, synthetic: state, metadata: {} }] : [];
  });
  return uiMessages({ id, entries: [...entries, ...(outcomes as never[])], interruption }, options);
}

/**
 * Calls wait for the page. Also if the process was killed before it recorded that: a client-side tool runs on the page,
 * so only the page can go on.
 */
export function isWaiting(view: View, tools: ToolSet | undefined): boolean {
  const { approvals, outputs } = waitsOf(view, tools);
  return view.interruption !== null && approvals.size + outputs.size > 0;
}

/** The last turn was handed over, and a request for its answer continues it; also if only the queue is left to do. */
export function isContinued(view: View, tools: ToolSet | undefined): boolean {
  const { interruption, queue } = view;
  if (!isHandedOver(view) || isWaiting(view, tools)) return false;
  return !interruption?.answered || queue.length > 0;
}

/** The last turn cannot go on by itself: it is complete, a person stopped it, or it waits for the page. */
export function isOver(view: View, tools: ToolSet | undefined): boolean {
  const { interruption } = view;
  return !interruption || interruption.answered || isStopped(interruption) || isWaiting(view, tools);
}

const REASONS = {
  ...({ interrupted: "killed", failed: "failed", stopped: "stopped" } as const),
  ...({ paused: "paused", parked: "paused" } as const),
};

function brokenOff(view: View, tools: ToolSet | undefined): ChatState["interrupted"] {
  const { state, interruption } = view;
  if (!(state in REASONS) || !interruption || interruption.answered || isStopped(interruption)) return null;
  const { calls } = accountOf(view, { policy: chatPolicy(view, tools) });
  const unfinished = calls.filter((call) => call.state !== "awaiting" && call.state !== "provider");
  return {
    reason: REASONS[state as keyof typeof REASONS],
    tools: unfinished.map(({ id, name, input, state: of, words }): UnfinishedTool => {
      return { toolCallId: id, toolName: name, input, state: of, words };
    }),
  };
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
