import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { OpenCall, ResumeOptions, Session, Turn } from "holdfast";
import type { Recorder } from "./recorder.ts";

/** A tool of LangChain that can be run without the agent. */
export interface OpenCallTool {
  readonly name: string;
  invoke(input: never, config?: never): Promise<unknown>;
}

/** Resumes the turn, and runs what is safe to run. Null if the model had answered. */
export async function resumeTurn(
  session: Session<BaseMessage>,
  recorder: Recorder,
  tools: readonly OpenCallTool[],
  options: ResumeOptions,
): Promise<Turn<BaseMessage> | null> {
  if (session.interruption?.answered) {
    await session.endTurn();
    return null;
  }
  const toolOf = ({ name }: OpenCall): OpenCallTool | undefined => tools.find((tool) => tool.name === name);
  const isRun = (call: OpenCall): boolean =>
    toolOf(call) !== undefined && (call.state === "never-started" || call.replay === "safe");
  const turn = await session.resumeTurn({ calls: (call) => (isRun(call) ? "keep" : "close"), ...options });
  // The agent asks the model first: calls that are still open have to be answered before.
  await Promise.all(turn.open.map((call) => run(call, toolOf(call), turn, recorder)));
  return turn;
}

async function run(
  { id, name, input }: OpenCall,
  tool: OpenCallTool | undefined,
  turn: Turn<BaseMessage>,
  recorder: Recorder,
): Promise<void> {
  if (!tool) return;
  await recorder.tool({ toolCall: { id, name, args: input } }, async () => {
    const call = { id, name, args: parsed(input), type: "tool_call" };
    const output = await tool.invoke(call as never, { signal: turn.signal, toolCallId: id } as never);
    if (ToolMessage.isInstance(output)) return output;
    const content = typeof output === "string" ? output : (JSON.stringify(output) ?? "");
    return new ToolMessage({ content, name, tool_call_id: id });
  });
}

/** The dialect reads a call's input from JSON. */
function parsed(input: unknown): unknown {
  return typeof input === "string" ? JSON.parse(input) : input;
}
