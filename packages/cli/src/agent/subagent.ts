import { type ModelMessage, type ToolSet, tool } from "ai";
import { dialects, type Session, type Store, type Turn } from "holdfast";
import { z } from "zod";
import { defined } from "../defined.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import { APP } from "../store/app.ts";
import { callWords } from "../transcript/words.ts";
import { type AgentEvents, SILENT } from "./events.ts";
import { runTurn, type TurnResult } from "./loop.ts";
import { type Approval, openApprovals } from "./open-calls.ts";
import type { ParkedCalls } from "./parked-calls.ts";
import { type AgentRole, AgentRuntime } from "./runtime.ts";
import type { Services } from "./services.ts";
import { findChild } from "./subagent-sessions.ts";

/**
 * Gets decisions on the calls of a sub-agent that works on this task. If nobody decides: `stopped` by a person, or
 * `left` for the next process.
 */
export type GetPermission = (
  agent: AgentRuntime,
  turn: Turn<ModelMessage>,
  approvals: readonly Approval[],
  task: string,
) => Promise<Turn<ModelMessage> | "stopped" | "left">;

/** A conversation's agent, which can delegate work to sub-agents. */
export function createAgent(
  session: Session<ModelMessage>,
  services: Services,
  events: AgentEvents,
  permit: GetPermission,
): AgentRuntime {
  const delegateTool: AgentRole["delegateTool"] = (agent, model, parked) =>
    makeDelegateTool({ services, parent: agent, model, events, permit, parked });
  return new AgentRuntime(session, services, events, { delegateTool });
}

/** What all sub-agents of a turn have in common. */
interface Delegator {
  readonly services: Services;
  readonly parent: AgentRuntime;
  readonly model: ResolvedModel;
  readonly events: DelegationEvents;
  readonly permit: GetPermission;
  readonly parked: ParkedCalls;
}

/**
 * Delegates work to an agent with its own session, linked to the call. The parent's conversation gets only the answer.
 */
function makeDelegateTool(delegator: Delegator): ToolSet[string] {
  return tool({
    description:
      "Delegates part of the task to another agent, which works in the same folder with the same tools and permissions, and answers once. It knows nothing about this conversation: tell it everything it needs. It cannot ask the user questions.",
    inputSchema: z.object({
      prompt: z.string().min(1).describe("The whole task, with everything the agent needs to know."),
    }),
    execute: ({ prompt }, { toolCallId: call, abortSignal }) =>
      delegate(delegator, { call, prompt, signal: abortSignal }),
  });
}

type DelegationEvents = Pick<AgentEvents, "denied" | "delegated" | "startedBelow" | "usedBelow">;

interface Delegation {
  readonly call: string;
  readonly prompt: string;
  readonly signal: AbortSignal | undefined;
}

/** Resumes the sub-agent if it was started before, so running the call again is safe. */
async function delegate(delegator: Delegator, delegated: Delegation): Promise<string> {
  const { services, parent, events, parked } = delegator;
  const { handOver } = parent.session.turn!;
  const session = await openChild(services.store, parent, delegated.call);
  events.delegated(delegated.call, session.id);
  let answer: string | null;
  // Not `await using`: a store error must reach the caller unchanged.
  try {
    answer = await workInSession(session, delegator, { ...delegated, handOver });
  } finally {
    await session.close();
  }
  if (answer === null) handOver.throwIfAborted();
  return answer ?? parked.park(delegated.call);
}

/**
 * Null if it waits for a person, and this process ends first. If the parent's turn is handed over, so is this one: it
 * throws TURN_HANDED_OVER, and the call runs again in the next process.
 */
async function workInSession(
  session: Session<ModelMessage>,
  { services, parent, model, events, permit }: Delegator,
  { call, prompt, signal, handOver }: Delegation & { readonly handOver: AbortSignal },
): Promise<string | null> {
  const { interruption } = session;
  if (interruption?.answered) await session.completeTurn();
  if (!session.interruption && session.entries.length > 0) return lastAnswer(session);
  const denied: AgentEvents["denied"] = (denied, decision) => events.denied(denied, decision, true);
  const started: AgentEvents["started"] = (_, name, input) => events.startedBelow(call, callWords({ name, input }));
  const used = (): void => events.usedBelow(session.id, session.usage);
  const agent = new AgentRuntime(session, services, { ...SILENT, started, denied, used }, { parent });
  if (interruption && !(await agent.settleCommands(interruption.calls, { signal }))) throw subagentStopped();
  let turn: Turn<ModelMessage> | null = interruption
    ? await agent.resumeTurn()
    : await session.startTurn({ role: "user", content: prompt });
  // When the process is told to end, leave the turn open: finishing the parent's turn resumes it.
  const stop = (): void => {
    if (handOver.aborted) agent.halt();
    else if (!services.ending.aborted) turn?.abort({ by: BY }).catch((error: Error) => process.emitWarning(error));
  };
  signal?.addEventListener("abort", stop, { once: true });
  const leave = (): void => {
    const withinMs = parent.handOverMs;
    session.close({ handOver: true, withinMs }).catch((error: Error) => process.emitWarning(error));
  };
  handOver.addEventListener("abort", leave, { once: true });
  if (handOver.aborted) leave();
  try {
    for (;;) {
      if (signal?.aborted) stop();
      const waiting = openApprovals(agent.durable.messages());
      const result: TurnResult =
        waiting.length > 0
          ? { kind: "waiting", approvals: waiting, calls: [] }
          : await runTurn(await agent.prepareTurn(turn, model));
      if (services.ending.aborted) await new Promise<never>(() => {});
      if (handOver.aborted && (result.kind === "aborted" || result.kind === "handed-over")) {
        await turn.fail(turn.handOver.reason);
        handOver.throwIfAborted();
      }
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
        case "waiting": {
          const waits: Turn<ModelMessage> = turn;
          // A turn that waits cannot be stopped: it just goes on waiting.
          turn = null;
          const decided = await permit(agent, waits, result.approvals, prompt);
          if (decided === "left") return null;
          turn = decided === "stopped" ? await session.resumeTurn({ calls: () => "keep" }) : decided;
          if (decided !== "stopped") break;
          await turn.abort({ by: BY });
          throw subagentStopped();
        }
        default:
          await turn.abort({ by: BY });
          throw subagentStopped();
      }
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    handOver.removeEventListener("abort", leave);
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
  const message = parent.entries.findLast((entry) =>
    dialects["ai-sdk"].calls(entry.message).some(({ id }) => id === call),
  )?.id;
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

/** The sub-agent's last message. */
function lastAnswer(session: Session<ModelMessage>): string {
  const last = session.messages.findLast(({ role }) => role === "assistant");
  return (last && dialects["ai-sdk"].text(last)) || "(The sub-agent said nothing.)";
}
