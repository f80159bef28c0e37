import { anthropic } from "../../../adapters/test/loopback/anthropic.ts";
import { gemini } from "../../../adapters/test/loopback/gemini.ts";
import { openaiChat } from "../../../adapters/test/loopback/openai-chat.ts";
import { openaiResponses } from "../../../adapters/test/loopback/openai-responses.ts";
import {
  type Answer,
  type Body,
  event,
  loopback,
  pieces,
  type Speech,
} from "../../../adapters/test/loopback/server.ts";
import type { Unit } from "./agent.ts";
import { heard, type Wire } from "./heard.ts";
import { type Act, type Story, SUMMARY } from "./stories.ts";

/** The model on the loopback interface that plays a story's other side. */
export interface Model extends AsyncDisposable {
  /** Without the path of the wire: `http://127.0.0.1:<port>`. */
  readonly origin: string;
  /** What the requests that show any of the conversation show, in the order in which they came. */
  readonly requests: readonly (readonly Unit[])[];
  readonly bodies: readonly Body[];
}

export interface Tool {
  readonly name: string;
  readonly input: unknown;
}

/** Reasoning as the models behind this wire send it that have any. */
const reasoningChat: Speech = {
  ...openaiChat,
  events: (answer, body, id) => {
    const [first, ...rest] = openaiChat.events(answer, body, id);
    const chunk = (reasoning_content: string): string =>
      event({
        ...{ id: `chatcmpl-${id}`, object: "chat.completion.chunk", created: 1_700_000_000, model: body["model"] },
        choices: [{ index: 0, delta: { reasoning_content }, finish_reason: null }],
      });
    return [first!, ...pieces(answer.reasoning ?? "").map(chunk), ...rest];
  },
};

const SPEECHES: Readonly<Record<Wire, Speech>> = {
  anthropic,
  "openai-responses": openaiResponses,
  "openai-chat": reasoningChat,
  gemini,
};

/**
 * Answers by what the request shows, so that a request that comes twice gets the same answer twice: the last prompt of
 * the story in it, and how often the model has spoken since.
 */
export async function startModel(wire: Wire, story: Story, toolFor: (act: Act) => Tool): Promise<Model> {
  const turns = [...story.sessions.flat(), ...(story.asides ?? [])];
  const requests: Unit[][] = [];
  const speech: Speech = {
    ...SPEECHES[wire],
    // The agents' requests are their own: they use features that the providers' published rules do not have.
    judge: () => [],
    // Gemini's requests say by their address what they want, and all that count here are streamed.
    ...(wire === "gemini" ? {} : { whole: SPEECHES[wire].whole ?? wholeOf(wire) }),
  };
  const server = await loopback(speech, (body) => {
    const units = heard(wire, body);
    requests.push(units);
    const at = units.findLastIndex(
      ({ kind, text }) => kind === "user" && turns.some((turn) => text.includes(turn.prompt)),
    );
    const turn = turns.find(({ prompt }) => units[at]?.text.includes(prompt));
    const isTurn = turn !== undefined && hasTools(body);
    const step = isTurn ? turn.steps[answersIn(units.slice(at + 1))] : undefined;
    if (!step) return { text: SUMMARY };
    const { acts = [], ...answer } = step;
    const call = ({ name, input }: Tool, n: number) => ({
      ...{ id: `call_${turns.indexOf(turn!)}_${turn!.steps.indexOf(step)}_${n}`, name, input },
    });
    return { ...answer, ...(acts.length > 0 ? { calls: acts.map(toolFor).map(call) } : {}) } satisfies Answer;
  });
  return {
    origin: new URL(server.url).origin,
    requests,
    bodies: server.requests,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const hasTools = (body: Body): boolean => ((body["tools"] ?? []) as unknown[]).length > 0;

/** How many answers of the model are among these: what it says in one go counts once. */
function answersIn(units: readonly Unit[]): number {
  const isModels = ({ kind }: Unit): boolean => kind !== "user" && kind !== "result";
  return units.filter((unit, n) => isModels(unit) && (n === 0 || !isModels(units[n - 1]!))).length;
}

/** An answer that nobody wants streamed, such as a title. */
function wholeOf(wire: Exclude<Wire, "gemini">): (answer: Answer, body: Body, id: string) => Body {
  const usage = { input_tokens: 12, output_tokens: 21, prompt_tokens: 12, completion_tokens: 21, total_tokens: 33 };
  if (wire === "anthropic")
    return ({ text = "" }, body, id) => ({
      ...{ id: `msg_${id}`, type: "message", role: "assistant", model: body["model"] ?? "none", usage },
      ...{ content: [{ type: "text", text }], stop_reason: "end_turn", stop_sequence: null, input_tokens: 12 },
    });
  return ({ text = "" }, body, id) => ({
    ...{ id: `chatcmpl-${id}`, object: "chat.completion", created: 1_700_000_000, model: body["model"], usage },
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
  });
}
