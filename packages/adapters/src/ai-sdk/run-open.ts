import type { ModelMessage, ToolSet } from "ai";
import { dialects, errorKind, type OpenCall, type Session, type Turn } from "holdfast";
import { contextOf } from "./approvals.ts";
import { errorOutput, ownTool } from "./content.ts";
import { copied } from "./copied.ts";
import type { DurableOptions, ToolSettings } from "./surface.ts";
import { failTurn, recordedTools } from "./tools.ts";
import type { Unrecorded } from "./unrecorded.ts";

interface Left {
  readonly session: Session<ModelMessage>;
  readonly tools: ToolSet;
  readonly settings: ToolSettings;
  readonly options: DurableOptions;
  readonly unrecorded: Unrecorded;
}

/** Runs what `resumeTurn` left open. Rejects if the store failed, or a context does not fit; what a tool throws is its outcome. */
export async function runOpen({ session, tools, settings, options, unrecorded }: Left): Promise<void> {
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
    unrecorded,
  };
  const recorded = recordedTools(tools, gate, options);
  const asked = approvalsAsked(session);
  const messages = session.messages.map(copied);
  const calls = turn.open.filter(({ state, id }) => state !== "awaiting" && state !== "provider" && !asked.has(id));
  // All of them, before any tool runs.
  const contexts = await Promise.all(calls.map(({ name }) => contextOf(ownTool(tools, name), name, settings)));
  const { experimental_sandbox } = settings;
  await Promise.all(
    calls.map((call, at) =>
      runCall(call, recorded, turn, { messages, context: contexts[at], experimental_sandbox }, gate.fail),
    ),
  );
  failed.signal.throwIfAborted();
}

/** The SDK runs those by itself once they are approved, and checks the approval first. */
function approvalsAsked(session: Session<ModelMessage>): Set<string> {
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
      const error = `There is no tool of the name ${JSON.stringify(name)} any more: it did not run.`;
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
    // It is on disk as the call's outcome, unless it is the store that failed: that was told to the gate.
    if (!tool) fail(error);
  }
}
