import { type ModelMessage, type ToolSet, tool } from "ai";
import type { Session, Store } from "holdfast";
import { z } from "zod";
import { defined } from "../defined.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import { APP } from "../store/app.ts";
import { callWords } from "../transcript/words.ts";
import { type AgentEvents, SILENT } from "./events.ts";
import { runTurn } from "./loop.ts";
import { resumeInterrupted } from "./open-calls.ts";
import { AgentRuntime } from "./runtime.ts";
import type { Services } from "./services.ts";
import { findChild } from "./subagent-sessions.ts";

/** The agent of a conversation, which can hand work to sub-agents. */
export function createAgent(session: Session<ModelMessage>, services: Services, events: AgentEvents): AgentRuntime {
  const delegateTool = (agent: AgentRuntime, model: ResolvedModel) => makeDelegateTool(services, agent, model, events);
  return new AgentRuntime(session, services, events, { delegateTool });
}

/**
 * Hands a part of the work to an agent with a session of its own, which is linked to the call. The parent's
 * conversation gets only its answer.
 */
function makeDelegateTool(
  services: Services,
  parent: AgentRuntime,
  model: ResolvedModel,
  events: DelegationEvents,
): ToolSet[string] {
  return tool({
    description:
      "Delegates part of the task to another agent, which works in the same folder with the same tools and permissions, and answers once. It knows nothing about this conversation: tell it everything it needs. It cannot ask the user.",
    inputSchema: z.object({
      prompt: z.string().min(1).describe("The whole task, with everything the agent needs to know."),
    }),
    execute: ({ prompt }, { toolCallId: call, abortSignal }) =>
      delegate(services, parent, model, { call, prompt, events, signal: abortSignal }),
  });
}

type DelegationEvents = Pick<AgentEvents, "denied" | "delegated" | "startedBelow" | "usedBelow">;

interface Delegation {
  readonly call: string;
  readonly prompt: string;
  readonly events: DelegationEvents;
  readonly signal: AbortSignal | undefined;
}

/** Taken up where it was left if it was begun before: so it can be run again without harm. */
async function delegate(
  services: Services,
  parent: AgentRuntime,
  model: ResolvedModel,
  delegated: Delegation,
): Promise<string> {
  const session = await openChild(services.store, parent, delegated.call);
  delegated.events.delegated(delegated.call, session.id);
  // Not `await using`: if the store fails, that is what the caller must see, as it is.
  try {
    return await workInSession(session, services, parent, model, delegated);
  } finally {
    await session.close();
  }
}

async function workInSession(
  session: Session<ModelMessage>,
  services: Services,
  parent: AgentRuntime,
  model: ResolvedModel,
  { call, prompt, events, signal }: Delegation,
): Promise<string> {
  const { interruption } = session;
  if (interruption?.answered) await session.endTurn();
  if (!session.interruption && session.entries.length > 0) return lastAnswer(session);
  const denied: AgentEvents["denied"] = (denied, decision) => events.denied(denied, decision, true);
  const started: AgentEvents["started"] = (_, name, input) => events.startedBelow(call, callWords({ name, input }));
  const used = (): void => events.usedBelow(session.id, session.usage);
  const agent = new AgentRuntime(session, services, { ...SILENT, started, denied, used }, { parent });
  if (interruption && !(await agent.settleCommands(interruption.calls, { signal }))) throw subagentStopped();
  const turn = interruption
    ? await resumeInterrupted(session, await agent.inspectCalls(interruption.calls))
    : await session.startTurn({ role: "user", content: prompt });
  // When the process is told to end, the turn stays open: finishing the parent's turn resumes it.
  const stop = (): void => {
    if (!services.ending.aborted) turn.abort({ by: BY }).catch((error: Error) => process.emitWarning(error));
  };
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const result = await runTurn(await agent.prepareTurn(turn, model));
    if (services.ending.aborted) await new Promise<never>(() => {});
    switch (result.kind) {
      case "completed":
        await turn.end();
        return lastAnswer(session);
      case "failed":
        await turn.fail(result.error);
        throw result.error;
      case "limit":
        await turn.fail(new Error(`It had not finished after ${result.steps} steps.`));
        throw new Error(
          `The sub-agent had not finished after ${result.steps} steps. Its work is recorded in session ${session.id}.`,
        );
      default:
        await turn.abort({ by: BY });
        throw subagentStopped();
    }
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

const BY = "the agent that asked for it";

function subagentStopped(): Error {
  return new Error("The sub-agent was stopped.");
}

async function openChild(
  store: Store,
  { session: parent, cwd }: AgentRuntime,
  call: string,
): Promise<Session<ModelMessage>> {
  const message = parent.entries.findLast((entry) => isCallIn(entry.message, call))?.id;
  const found = await findChild(store, parent.id, call, message);
  if (found) return store.resume<ModelMessage>(found, { app: APP });
  return store.create<ModelMessage>({
    dialect: "ai-sdk",
    app: APP,
    parent: { session: parent.id, call },
    ...defined({ labels: message === undefined ? undefined : { message } }),
    cwd,
  });
}

function isCallIn({ role, content }: ModelMessage, call: string): boolean {
  return (
    role === "assistant" &&
    typeof content !== "string" &&
    content.some((part) => part.type === "tool-call" && part.toolCallId === call)
  );
}

/** What the sub-agent said last. */
function lastAnswer(session: Session<ModelMessage>): string {
  const last = session.messages.findLast(({ role }) => role === "assistant");
  if (!last) return "(The sub-agent said nothing.)";
  if (typeof last.content === "string") return last.content;
  const texts = last.content.map((part) => (part.type === "text" ? part.text : ""));
  return texts.join("") || "(The sub-agent said nothing.)";
}
