import { appendFileSync, writeSync } from "node:fs";
import { isStepCount, jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import type { OpenCall, Session } from "holdfast";
import { durable } from "../../src/ai-sdk/index.ts";
import { models, type ProviderName } from "../loopback/models.ts";
import type { Answer, Body } from "../loopback/server.ts";
import { type Deadline, openDeadly } from "./deadly-store.ts";

/** The agent that is killed: as a program of its own, and again in the test, which goes on where it died. */

export interface Orders extends Deadline {
  readonly provider: ProviderName;
  readonly url: string;
  /** What the tools do to the world: a line for each. */
  readonly effects: string;
  /** Whether a person must say yes before anything is sent. */
  readonly asks: boolean;
}

export const PROMPT: ModelMessage = { role: "user", content: "Look twice, then tell everybody." };

export const LAST = "That is all.";

/** What the model answers: a pure function of what it is sent, so that it goes on as if nothing had happened. */
export function reply(body: Body): Answer {
  const seen = JSON.stringify(body);
  if (!seen.includes("I look at both")) {
    return {
      reasoning: "Both can be looked at together.",
      text: "I look at both places.",
      calls: [
        { id: "call_look_1", name: "look", input: { at: "here" } },
        { id: "call_look_2", name: "look", input: { at: "there" } },
      ],
    };
  }
  if (!seen.includes("I tell them")) {
    const calls = [{ id: "call_send", name: "send", input: { at: "all" } }];
    return { reasoning: "Now they can be told.", text: "I tell them.", calls };
  }
  return { text: LAST };
}

const place = jsonSchema<{ at: string }>({ type: "object", properties: { at: { type: "string" } }, required: ["at"] });

export function toolbox({ effects, asks }: Pick<Orders, "effects" | "asks">): ToolSet {
  const execute = async ({ at }: { at: string }, { toolCallId }: { toolCallId: string }): Promise<object> => {
    appendFileSync(effects, `${toolCallId}\n`);
    return { done: at };
  };
  return {
    look: tool({ inputSchema: place, execute }),
    send: tool({
      inputSchema: place,
      execute,
      needsApproval: asks,
      toModelOutput: () => ({ type: "text", value: "Sent to all." }),
    }),
  };
}

/** What was never started or may be run twice is run again; what waits for a person goes on waiting. */
function kept({ state, replay }: OpenCall): "keep" | "close" {
  return state === "never-started" || state === "awaiting" || replay === "safe" ? "keep" : "close";
}

/** The requests for approval that nobody has answered. */
function requestsIn(messages: readonly ModelMessage[]): string[] {
  const idsOf = (type: string): string[] =>
    messages.flatMap(({ content }) => {
      const parts = typeof content === "string" ? [] : (content as { type: string; approvalId?: string }[]);
      return parts.flatMap((part) => (part.type === type ? [part.approvalId ?? ""] : []));
    });
  const answered = new Set(idsOf("tool-approval-response"));
  return idsOf("tool-approval-request").filter((id) => !answered.has(id));
}

/** One life of the agent: begins the turn, or goes on with it. */
export async function live(
  orders: Orders,
  session: Session<ModelMessage>,
  acknowledged: (what: string) => void = () => {},
): Promise<string> {
  const agent = durable(session, { replay: { look: "safe" } });
  const tools = toolbox(orders);
  if (!session.interruption) await session.startTurn(PROMPT);
  else if (!(await agent.resume(tools, { calls: kept }))) return "completed";
  acknowledged("prompt");
  const model = await models[orders.provider](orders.url);
  for (;;) {
    for (const approvalId of requestsIn(session.messages)) {
      const response = { type: "tool-approval-response" as const, approvalId, approved: true };
      await session.turn!.append({ role: "tool", content: [response] });
      acknowledged("approved");
    }
    await agent.runOpen(tools);
    const run = streamText(agent.wrap({ model, tools, stopWhen: isStepCount(6), maxRetries: 0, onError: () => {} }));
    const { kind } = await agent.finish(run);
    if (kind !== "waiting") return kind;
    await session.resumeTurn({ calls: kept });
  }
}

export const OPEN = { draftMs: 1 } as const;

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const store = await openDeadly(orders);
  const session =
    (await store.resumeLatest<ModelMessage>({}, OPEN)) ??
    (await store.create<ModelMessage>({ ...OPEN, dialect: "ai-sdk" }));
  // It may have died between the end of its turn and its own.
  const isDone = session.messages.length > 0 && session.interruption === null;
  const kind = isDone ? "completed" : await live(orders, session, (what) => writeSync(1, `${what}\n`));
  await store.close();
  writeSync(1, `${kind}\n`);
}
