import type { UIMessage, UIMessageChunk } from "ai";
import type { UIMessagesOptions } from "../ui-messages.ts";
import { isContinued, isOver, type View } from "./state.ts";

/** Another process continues the answer. For `useChat` that is no error, and it sends nothing by itself. */
export const HANDED_OVER: UIMessageChunk = { type: "finish", finishReason: "interrupted" };

/**
 * The last chunk of a turn's answer: an error if it broke off, so that the page does not take it for complete. `turn`:
 * null if the prompt is still in the queue.
 */
export function endOfAnswer(
  view: View,
  turn: number | null | undefined,
  message: UIMessage | undefined,
  { tools }: UIMessagesOptions,
  onError: (error: unknown) => string,
): UIMessageChunk {
  const isBroken = turn === null || (view.interruption?.turn === turn && !isOver(view, tools));
  if (isBroken && isContinued(view, tools)) return HANDED_OVER;
  return isBroken ? { type: "error", errorText: onError(new Error("The answer broke off.")) } : finish(message);
}

export function finish(answer: UIMessage | undefined): UIMessageChunk {
  const metadata = answer?.metadata === undefined ? {} : { messageMetadata: answer.metadata };
  return { type: "finish", ...metadata } as UIMessageChunk;
}
