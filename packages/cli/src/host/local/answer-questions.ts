import type { ModelMessage } from "ai";
import type { Store, Turn } from "holdfast";
import type { Approval } from "../../agent/open-calls.ts";
import type { AgentRuntime } from "../../agent/runtime.ts";
import type { GetPermission } from "../../agent/subagent.ts";
import { callsWaitingBelow } from "../../agent/subagent-sessions.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { askedBelow } from "../approval/approval-request.ts";
import { getPermission } from "../approval/get-permission.ts";
import type { PermissionPrompts } from "../approval/permission-prompts.ts";
import type { ApprovalAnswer } from "../host.ts";
import { type ActiveWork, HAND_OVER } from "./active-work.ts";
import type { ChatStateStore } from "./chat-state-store.ts";

interface OpenQuestions {
  readonly states: ChatStateStore;
  readonly prompts: PermissionPrompts;
  readonly agent: AgentRuntime;
}

/** A person answers one of the open questions. */
export function answerQuestion(
  { states, prompts, agent }: OpenQuestions,
  call: string,
  answer: ApprovalAnswer,
  reason?: string,
): void {
  const ask = states.state.asks.find((one) => one.call === call);
  if (!ask) throw notAsked(prompts.answered(call));
  if (!ask.choices.some((choice) => choice.answer === answer))
    throw new CommandError(EXIT.usage, "USAGE", `"${answer}" is not among the answers to this question.`);
  const { rule } = ask;
  if (rule !== null && answer === "always") allowInSession(states, agent, rule);
  if (rule !== null && answer === "project") allowInProject(states, agent, rule);
  prompts.answer(ask, answer !== "deny", "user", reason);
  if (answer !== "always" && answer !== "project") return;
  // The rule also covers other open questions of its kind.
  for (const other of states.state.asks)
    if (agent.decide(other.name, other.input).verdict === "allow") prompts.answer(other, true, "rules");
}

function notAsked(answered: ReturnType<PermissionPrompts["answered"]>): CommandError {
  if (!answered) return new CommandError(EXIT.usage, "CALL_UNKNOWN", "That call is not waiting for an answer.");
  const message = `This call was already ${answered.allowed ? "allowed" : "denied"}. The first answer counts; yours changed nothing.`;
  return Object.assign(new CommandError(EXIT.usage, "ALREADY_ANSWERED", message), { facts: answered });
}

function allowInSession(states: ChatStateStore, agent: AgentRuntime, rule: string): void {
  const unkept = agent.allow(rule);
  if (unkept === null) return;
  const text = `Allowed until you quit. You will be asked again next time: the permission could not be saved (${unkept}).`;
  states.emit({ type: "notice", level: "warning", text });
}

function allowInProject(states: ChatStateStore, agent: AgentRuntime, rule: string): void {
  const unsaved = agent.allowInProject(rule);
  if (unsaved === null) {
    const text = 'Saved as a rule for this project. "holdfast rules" lists and removes such rules.';
    states.emit({ type: "notice", level: "info", text });
    return;
  }
  const text = `Allowed in this session only: the rule for this project could not be saved (${unsaved}).`;
  states.emit({ type: "notice", level: "warning", text });
  allowInSession(states, agent, rule);
}

/** The chat's own agent asks. `asking`: whether somebody can still be asked. Null if nobody decided. */
export function getPermissionHere(
  { states, prompts, agent }: OpenQuestions,
  turn: Turn<ModelMessage>,
  approvals: readonly Approval[],
  { asks, asking }: { readonly asks: "person" | "nobody"; readonly asking: () => boolean },
): Promise<Turn<ModelMessage> | null> {
  return getPermission(agent, turn, approvals, {
    asks,
    takeAnswered: (questions, answers) => prompts.takeAnswered(questions, answers),
    denied: (call, decision) => {
      states.agentEvents().denied(call, decision);
      states.emit({ type: "permission.answered", call: call.toolCallId, allowed: false, by: "rules" });
    },
    ask: async (asked) => (asking() ? prompts.ask(asked) : null),
  });
}

/** Only sub-agents that wait for a person were left open: they ask when they are resumed, before anything runs. */
export async function isWaitingBelow(agent: AgentRuntime, store: Store): Promise<boolean> {
  const { id, state, interruption } = agent.session;
  const calls = interruption?.calls ?? [];
  if (state === "failed" || state === "stopped" || calls.length === 0) return false;
  for (const call of calls) {
    const waiting = await callsWaitingBelow(store, id, call);
    // If rules allow all of them by now, they would run without a word of the person's.
    if (!waiting.some(({ name, input }) => agent.decide(name, input).verdict === "ask")) return false;
  }
  return true;
}

/** A sub-agent asks through the chat, while the turn that started it is running. */
export async function getPermissionBelow(
  { states, prompts, agent }: OpenQuestions,
  turn: Turn<ModelMessage>,
  approvals: readonly Approval[],
  { task, asks, work }: { readonly task: string; readonly asks: "person" | "nobody"; readonly work: ActiveWork },
): ReturnType<GetPermission> {
  const goesOn = await getPermission(agent, turn, approvals, {
    asks,
    takeAnswered: (questions) => questions,
    denied: (call, decision) => states.agentEvents().denied(call, decision, true),
    ask: async (asked) => {
      if (work.signal.aborted) return null;
      // Agents may use the same call ids.
      const own = new Map(asked.map((ask) => [`${agent.session.id}/${ask.call}`, ask]));
      const answers = await prompts.askBelow(
        [...own].map(([call, ask]) => askedBelow(ask, call, agent.session.id, task)),
      );
      if (!answers) return null;
      for (const { approved } of answers.values()) if (!approved) states.deniedBelow++;
      return new Map([...answers].map(([call, answer]) => [own.get(call)!.call, answer]));
    },
  });
  // Only a person ends the wait; if the chat is closed or the store fails, the question is asked again later.
  const isLeft = work.stoppedBy === null || work.stoppedBy === "close" || work.stoppedBy === HAND_OVER;
  return goesOn ?? (isLeft ? "left" : "stopped");
}
