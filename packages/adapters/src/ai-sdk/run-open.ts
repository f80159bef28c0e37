import type { ModelMessage, ToolSet } from "ai";
import { dialects, type OpenCall, type Session, type Turn } from "holdfast";
import { errorOutput, ownTool } from "./content.ts";
import { copied } from "./copied.ts";
import type { DurableOptions } from "./surface.ts";
import { recordedTools } from "./tools.ts";

/** Runs what `resumeTurn` left open. Rejects if the store failed; what a tool throws is its outcome. */
export async function runOpen(session: Session<ModelMessage>, tools: ToolSet, options: DurableOptions): Promise<void> {
  const { turn } = session;
  if (!turn) throw new Error("No turn is open: call session.resumeTurn first.");
  const failed = new AbortController();
  const gate = {
    callOf: () => {
      failed.signal.throwIfAborted();
      turn.signal.throwIfAborted();
      return { turn, part: null };
    },
    fail: (error: unknown) => failed.abort(error),
    stopped: failed.signal,
  };
  const recorded = recordedTools(tools, gate, options);
  const asked = approvalsAsked(session);
  const messages = session.messages.map(copied);
  await Promise.all(
    turn.open
      .filter(({ state, id }) => state !== "awaiting" && state !== "provider" && !asked.has(id))
      .map((call) => runCall(call, recorded, turn, messages, gate.fail)),
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
  messages: ModelMessage[],
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
      toolCallId: id,
      messages,
      abortSignal: turn.signal,
      context: undefined,
    });
    if (made && typeof made === "object" && Symbol.asyncIterator in made) {
      for await (const _ of made as AsyncIterable<unknown>);
    } else await made;
  } catch (error) {
    // It is on disk as the call's outcome, unless it is the store that failed: that was told to the gate.
    if (!tool) fail(error);
  }
}
