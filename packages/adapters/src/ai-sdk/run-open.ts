import type { ModelMessage, ToolSet } from "ai";
import { dialects, errorKind, type OpenCall, type Session, type Turn } from "holdfast";
import type { UnwrittenOutcomes } from "../unwritten-outcomes.ts";
import { contextOf } from "./approvals.ts";
import { errorOutput, ownTool } from "./content.ts";
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
  const gate = {
    callOf: () => {
      failed.signal.throwIfAborted();
      turn.signal.throwIfAborted();
      return { turn, part: null };
    },
    fail: (error: unknown) => {
      failed.abort(error);
      if (errorKind(error) === "misuse") failTurn(turn, error);
    },
    stopped: failed.signal,
    unwritten,
  };
  const recorded = recordTools(tools, gate, options);
  const asked = requestedApprovals(session);
  const messages = session.messages.map(mutableCopy);
  const calls = turn.open.filter(({ state, id }) => state !== "awaiting" && state !== "provider" && !asked.has(id));
  // Check all of them before any tool runs.
  const contexts = await Promise.all(calls.map(({ name }) => contextOf(ownTool(tools, name), name, settings)));
  const { experimental_sandbox } = settings;
  await Promise.all(
    calls.map((call, at) =>
      runCall(call, recorded, turn, { messages, context: contexts[at], experimental_sandbox }, gate.fail),
    ),
  );
  failed.signal.throwIfAborted();
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
  fail: (error: unknown) => void,
): Promise<void> {
  const tool = ownTool(tools, name);
  try {
    if (!tool) {
      const error = `The tool ${JSON.stringify(name)} no longer exists: it did not run.`;
      const part = { type: "tool-result" as const, toolCallId: id, toolName: name, output: errorOutput(error) };
      await turn.toolEnded(id, { error }, { role: "tool", content: [part] });
      return;
    }
    if (typeof tool.execute !== "function") return;
    const made = (tool.execute as (input: unknown, options: unknown) => unknown)(input, {
      ...given,
      toolCallId: id,
      abortSignal: turn.signal,
    });
    if (made && typeof made === "object" && Symbol.asyncIterator in made) {
      for await (const _ of made as AsyncIterable<unknown>);
    } else await made;
  } catch (error) {
    // The error is recorded as the call's outcome, unless the store failed: the gate knows about that.
    if (!tool) fail(error);
  }
}
