import type { ModelMessage } from "ai";
import type { Entry, Session } from "holdfast";
import { compact } from "../../agent/compaction.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { whatHappened } from "../../models/explain.ts";
import type { ResolvedModel } from "../../models/resolve.ts";
import { explainFailure, isStoreFailure } from "../failures.ts";
import { messageText } from "./chat-state.ts";

const AS_IT_WAS = "The conversation was not compacted and is unchanged.";

/** Compacts at a person's request. No turn fails with it, so there is none to finish. */
export async function compactOnRequest(
  session: Session<ModelMessage>,
  model: ResolvedModel,
  signal: AbortSignal,
): Promise<void> {
  try {
    await compact(session, model, signal);
  } catch (error) {
    if (isStoreFailure(error)) throw error;
    if (signal.aborted) throw new CommandError(EXIT.failed, "STOPPED", `Stopped. ${AS_IT_WAS}`);
    const { code, message } = explainFailure(error, model.name);
    throw new CommandError(EXIT.model, code, `${whatHappened(message)} ${AS_IT_WAS}`, error);
  }
}

/** The entries before this prompt, and its text. */
export function splitBeforePrompt(
  { entries }: Pick<Session<ModelMessage>, "entries">,
  message: string,
): { readonly kept: Entry<ModelMessage>[]; readonly prompt: string } {
  const at = entries.findIndex(({ id }) => id === message);
  const entry = entries[at];
  if (entry?.message.role !== "user" || entry.synthetic)
    throw new CommandError(EXIT.usage, "MESSAGE_UNKNOWN", "You can only rewind to a prompt of this conversation.");
  const kept = entries.slice(0, at).filter((one) => one.replacedBy === undefined);
  return { kept, prompt: messageText(entry.message) };
}
