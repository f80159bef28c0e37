import {
  getHandoff,
  getTransferMessage,
  type Handoff,
  type HandoffInputData,
  type Model,
  type Tool,
} from "@openai/agents";
import { functionResult } from "./items.ts";
import { recordModel } from "./model.ts";
import { transferredTo } from "./replay.ts";
import type { AnyAgent } from "./surface.ts";
import { recordTool, type Wrapping } from "./tools.ts";

// biome-ignore lint/suspicious/noExplicitAny: the SDK's own signature.
type AnyHandoff = Handoff<any, any>;
type InputFilter = (data: HandoffInputData) => HandoffInputData;

/** Agents that record: each with the same name, instructions and hooks, over its original, which stays as it is. */
export class RecordedAgents {
  readonly #wrapping: Wrapping;
  readonly #made = new WeakMap<AnyAgent, AnyAgent>();
  readonly #originals = new WeakMap<AnyAgent, AnyAgent>();
  readonly #tools = new WeakMap<AnyAgent, WeakMap<object, Tool<unknown>>>();

  constructor(wrapping: Wrapping) {
    this.#wrapping = wrapping;
  }

  of<A extends AnyAgent>(agent: A): A {
    if (this.#originals.has(agent)) return agent;
    const known = this.#made.get(agent);
    if (known) return known as A;
    const recording = (): ReturnType<Wrapping["runLog"]> => this.#runLog();
    const made = Object.create(agent, {
      ...(typeof agent.model === "object" ? { model: { value: recordModel(agent.model as Model, recording) } } : {}),
      getAllTools: {
        value: async (...given: Parameters<AnyAgent["getAllTools"]>) => {
          const tools = (await agent.getAllTools(...given)) as Tool<unknown>[];
          const recorded = tools.map((tool) => this.#tool(tool, made));
          recording()?.offer(recorded);
          return recorded;
        },
      },
      getEnabledHandoffs: {
        value: async (...given: Parameters<AnyAgent["getEnabledHandoffs"]>) => {
          const handoffs = await agent.getEnabledHandoffs(...given);
          return handoffs.map((one) => this.#handoff(getHandoff(one)));
        },
      },
    }) as A;
    this.#made.set(agent, made);
    this.#originals.set(made, agent);
    return made;
  }

  /** Whether this is one of the agents that work on the turn, and not one that runs inside a tool. */
  isRecording(agent: AnyAgent): boolean {
    return this.#originals.has(agent);
  }

  /** Null inside a tool. */
  #runLog(): ReturnType<Wrapping["runLog"]> {
    return this.#wrapping.inTool.getStore() ? null : this.#wrapping.runLog();
  }

  /** One for each tool: the SDK recognises an approved call by its tool. */
  #tool(tool: Tool<unknown>, agent: AnyAgent): Tool<unknown> {
    const tools = this.#tools.get(agent) ?? new WeakMap<object, Tool<unknown>>();
    this.#tools.set(agent, tools);
    const made = tools.get(tool) ?? recordTool(tool, agent, this.#wrapping);
    tools.set(tool, made);
    return made;
  }

  #handoff(handoff: AnyHandoff): AnyHandoff {
    const { inputFilter } = handoff;
    return handoff.clone({
      agent: this.of(handoff.agent),
      agentName: handoff.agentName,
      onInvokeHandoff: async (context, input) => this.of(await this.#invoke(handoff, context, input)),
      ...(inputFilter ? { inputFilter: this.filter(inputFilter as InputFilter) } : {}),
    } as Parameters<AnyHandoff["clone"]>[0]);
  }

  /** From here on the SDK's own input counts, and not the session's. */
  filter(inputFilter: InputFilter): InputFilter {
    return (data) => {
      const runLog = this.#runLog();
      if (runLog) runLog.isFiltered = true;
      return inputFilter(data);
    };
  }

  async #invoke(handoff: AnyHandoff, ...given: Parameters<AnyHandoff["onInvokeHandoff"]>): Promise<AnyAgent> {
    const runLog = this.#runLog();
    const call = runLog?.callFor((one) => one.type === "function_call" && one.name === handoff.toolName);
    if (!runLog || call?.type !== "function_call") return handoff.onInvokeHandoff(...given);
    const known = runLog.outcomeOf(call.callId);
    if (known) return agentNamed(handoff.agent, transferredTo(known) ?? "") ?? handoff.agent;
    await runLog.start(call.callId, {});
    try {
      const next = await handoff.onInvokeHandoff(...given);
      const message = getTransferMessage(next);
      await runLog.end(call.callId, { value: message }, functionResult(call, message));
      return next;
    } catch (error) {
      if (!runLog.failure) await runLog.end(call.callId, { error });
      throw error;
    }
  }
}

/** Among this agent and those it can hand off to. */
export function agentNamed(agent: AnyAgent, name: string): AnyAgent | null {
  const seen = new Set<AnyAgent>();
  const waiting = [agent];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (seen.has(next)) continue;
    if (next.name === name) return next;
    seen.add(next);
    for (const one of next.handoffs ?? []) waiting.push(getHandoff(one as never).agent as AnyAgent);
  }
  return null;
}
