import type { ModelMessage, ToolSet } from "ai";
import { decideCall, dialects, errorKind, type OpenCall, type Session, type Turn } from "holdfast";
import { isOfHandOver } from "../hand-over.ts";
import { missingTools, rulesFor } from "../tool-rules.ts";
import type { UnwrittenOutcomes } from "../unwritten-outcomes.ts";
import { contextOf } from "./approvals.ts";
import { ownTool } from "./content.ts";
import { mutableCopy } from "./mutable-copy.ts";
import type { DurableOptions, ToolSettings } from "./surface.ts";
import { failTurn, recordTools } from "./tools.ts";

interface OpenRun {
  readonly session: Session<ModelMessage>;
  readonly tools: ToolSet;
  readonly settings: ToolSettings;
  readonly options: DurableOptions;
  readonly unwritten: UnwrittenOutcomes;
}

/**
 * Runs the calls that `resumeTurn` left open. Rejects if the store fails or a context does not fit. An error thrown by
 * a tool is its outcome.
 */
export async function runOpen({ session, tools, settings, options, unwritten }: OpenRun): Promise<void> {
  const { turn } = session;
  if (!turn) throw new Error("No turn is open: call session.resumeTurn first.");
  const failed = new AbortController();
  let handedOver: { readonly error: unknown } | null = null;
  const gate = {
    callOf: () => {
      failed.signal.throwIfAborted();
      turn.signal.throwIfAborted();
      return { turn, part: null };
    },
    fail: (error: unknown) => {
      // What runs is not stopped.
      if (isOfHandOver(error)) {
        handedOver = { error };
        return;
      }
      failed.abort(error);
      if (errorKind(error) === "misuse") failTurn(turn, error);
    },
    stopped: failed.signal,
    unwritten,
  };
  const recorded = recordTools(tools, gate, options);
  const asked = requestedApprovals(session);
  const messages = session.messages.map(mutableCopy);
  const policy = { runs: true, tools: rulesFor(Object.keys(tools), options) };
  const calls = turn.open.filter(({ state, id }) => state !== "awaiting" && state !== "provider" && !asked.has(id));
  const missing = calls.filter(({ name }) => !ownTool(tools, name));
  if (missing.length > 0) throw missingTools(missing);
  // An earlier process started the others, so the model is told that nobody knows what they did.
  const free = calls.filter((call) => call.state !== "outcome-unknown" || decideCall(call, policy) === "run-again");
  // Check all of them before any tool runs.
  const contexts = await Promise.all(free.map(({ name }) => contextOf(ownTool(tools, name), name, settings)));
  const { experimental_sandbox } = settings;
  await Promise.all(
    free.map((call, at) => runCall(call, recorded, turn, { messages, context: contexts[at], experimental_sandbox })),
  );
  failed.signal.throwIfAborted();
  if (handedOver) throw (handedOver as { readonly error: unknown }).error;
}

/** The SDK runs those itself once they are approved, and checks the approval first. */
function requestedApprovals(session: Session<ModelMessage>): Set<string> {
  const last = session.messages.findLast(({ role }) => role === "assistant");
  return new Set(
    last ? dialects["ai-sdk"].calls(last as never).flatMap(({ id, awaiting }) => (awaiting ? [id] : [])) : [],
  );
}

async function runCall(
  { id, name, input }: OpenCall,
  tools: ToolSet,
  turn: Turn<ModelMessage>,
  given: { readonly messages: ModelMessage[]; readonly context: unknown; readonly experimental_sandbox: unknown },
): Promise<void> {
  const { execute } = ownTool(tools, name)!;
  if (typeof execute !== "function") return;
  try {
    const made = (execute as (input: unknown, options: unknown) => unknown)(input, {
      ...given,
      toolCallId: id,
      abortSignal: turn.signal,
    });
    if (made && typeof made === "object" && Symbol.asyncIterator in made) {
      for await (const _ of made as AsyncIterable<unknown>);
    } else await made;
  } catch {
    // The error is recorded as the call's outcome, unless the store failed: the gate knows about that.
  }
}
