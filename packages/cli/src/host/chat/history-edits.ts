import type { ModelMessage } from "ai";
import type { Session } from "holdfast";
import { compact } from "../../agent/compaction.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { whatHappened } from "../../models/explain.ts";
import type { ResolvedModel } from "../../models/resolve.ts";
import { failureShown, isStoreFailure } from "./describe.ts";

const AS_IT_WAS = "The conversation was not summed up, and is as it was.";

/** A summary that a person has asked for. No turn fails with it: there is none to be finished. */
export async function sumUp(session: Session<ModelMessage>, model: ResolvedModel, signal: AbortSignal): Promise<void> {
  try {
    await compact(session, model, signal);
  } catch (error) {
    if (isStoreFailure(error)) throw error;
    if (signal.aborted) throw new CommandError(EXIT.failed, "STOPPED", `Stopped. ${AS_IT_WAS}`);
    const { code, message } = failureShown(error, model.name);
    throw new CommandError(EXIT.model, code, `${whatHappened(message)} ${AS_IT_WAS}`, error);
  }
}
