import type { Account, AcpMessage, CallAccount, Interruption, Reading } from "holdfast";
import { objectOf, type Params } from "../record/message.ts";

/** What the agent was doing when it was cut off. */
export interface InterruptedTurn extends Pick<Interruption<AcpMessage>, "startedAt" | "lastAt" | "how"> {
  /** The content blocks of the prompt that it was working on. It is never sent again by itself. */
  readonly prompt: readonly unknown[];
  /** The calls that have not ended, in the order in which they were made. */
  readonly calls: readonly InterruptedCall[];
}

export interface InterruptedCall extends Pick<CallAccount, "state" | "words"> {
  readonly toolCallId: string;
  readonly title: string;
  readonly rawInput?: unknown;
  /** The parameters of the last request for permission, without the session's id. Ask again before you run the call. */
  readonly permission?: { readonly toolCall: unknown; readonly options: readonly unknown[] };
}

/** What was in flight; null if the last turn ended, or the user stopped it. */
export function interruptedTurn(
  { interruption, entries }: Pick<Reading<AcpMessage>, "interruption" | "entries">,
  { state, calls }: Pick<Account, "state" | "calls">,
): InterruptedTurn | null {
  if (!interruption || state === "stopped") return null;
  const { prompt, startedAt, lastAt, how, turn } = interruption;
  const said = entries.flatMap((entry) =>
    entry.turn === turn && entry.synthetic === undefined ? [entry.message as Params] : [],
  );
  const blocks = objectOf(prompt.message)?.["prompt"];
  return {
    ...{ prompt: Array.isArray(blocks) ? blocks : [], startedAt, lastAt, how },
    calls: calls.map((call) => interruptedCall(call, said)),
  };
}

function interruptedCall({ id, name, input, state, words }: CallAccount, said: readonly Params[]): InterruptedCall {
  const requests = said.filter(({ toolCall }) => objectOf(toolCall)?.["toolCallId"] === id);
  const { toolCall, options } = requests.at(-1) ?? {};
  // The newest input counts: agents announce a call before they know all of it.
  const inputs = said.flatMap((one) => {
    const about = objectOf(one["toolCall"]) ?? one;
    return about["toolCallId"] === id && about["rawInput"] !== undefined ? [about["rawInput"]] : [];
  });
  const rawInput = inputs.at(-1) ?? input;
  return {
    ...{ toolCallId: id, title: name, state, words },
    ...(rawInput === undefined ? {} : { rawInput }),
    ...(toolCall === undefined ? {} : { permission: { toolCall, options: Array.isArray(options) ? options : [] } }),
  };
}
