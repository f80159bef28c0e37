import { existsSync } from "node:fs";
import type { ModelMessage, TextStreamPart, ToolSet } from "ai";
import {
  type Account,
  accountOf,
  type CallPolicy,
  cutOffWords,
  type Interruption,
  type Session,
  type Usage,
} from "holdfast";
import { POLICY } from "../../store/account.ts";
import { recoveryLines } from "../../store/damage.ts";
import { sumUsage, usageOf } from "../../store/usage.ts";
import type { Item } from "../../transcript/item.ts";
import { itemsOf, type Now } from "../../transcript/items.ts";
import type { ChatEvent, ChatState, InterruptionShown, LiveAnswer } from "../host.ts";
import { imagesOf } from "./prompt-message.ts";

/** While a tool runs, only this much of its output is shown, from the end. */
const OUTPUT_CHARACTERS_MAX = 16_384;

const NOTHING: LiveAnswer = { text: "", reasoning: "", calls: [] };

/** The state of a chat that has just been opened. */
export function firstState(
  session: Session<ModelMessage>,
  { cwd, model, maxTokens }: { readonly cwd: string; readonly model: string; readonly maxTokens: number },
): ChatState {
  const now: ChatState = {
    id: session.id,
    title: session.attributes.title,
    cwd,
    model,
    status: "idle",
    isBusy: false,
    account: accountHere(session),
    items: [],
    live: null,
    outputs: {},
    asks: [],
    queue: [],
    interruption: null,
    usage: session.usage,
    window: { usedTokens: 0, maxTokens },
    failure: null,
    damage: [...recoveryLines(session.recovery), ...missingFolderLines(cwd)],
    mode: "ask",
    canUndo: false,
    isCompacting: false,
  };
  return withRecorded(now, session, {});
}

/** No matter which program wrote it: a host opens another program's session only to take it over. */
function accountHere(session: Session<ModelMessage>, policy: CallPolicy = POLICY): Account {
  return accountOf(session, { isOpenHere: true, policy });
}

/** Updates the state from the journal. Unchanged items stay the same objects. */
export function withRecorded(
  state: ChatState,
  session: Session<ModelMessage>,
  now: Pick<Now, "running" | "children"> & {
    readonly below?: ReadonlyMap<string, Usage>;
    readonly policy?: CallPolicy;
  },
): ChatState {
  const waiting = new Set(state.asks.map(({ call }) => call));
  return {
    ...state,
    title: session.attributes.title,
    account: accountHere(session, now.policy),
    items: itemsOf(session, { ...now, waiting }),
    queue: queueShown(session.queue),
    usage: sumUsage([usageOf(session), ...(now.below?.values() ?? [])]),
  };
}

export function queueShown(queue: Session<ModelMessage>["queue"]): ChatState["queue"] {
  return queue.map(({ id, prompt }) => {
    const images = imagesOf(prompt);
    return { id, text: messageText(prompt), ...(images.length > 0 ? { images } : {}) };
  });
}

/** New or changed items. An item that was only rebuilt because its neighbour changed does not count. */
export function changedItems(before: readonly Item[], after: readonly Item[]): Item[] {
  const known = new Map(before.map((item) => [item.id, item]));
  return after.filter((item) => {
    const old = known.get(item.id);
    return old !== item && (old === undefined || JSON.stringify(old) !== JSON.stringify(item));
  });
}

/** Applies a part of the stream to the live answer, with the event to emit; null for other kinds of parts. */
export function applyStreamPart(
  state: ChatState,
  part: TextStreamPart<ToolSet>,
): { readonly state: ChatState; readonly event?: ChatEvent } | null {
  const live = state.live ?? NOTHING;
  switch (part.type) {
    case "text-delta":
      return {
        state: { ...state, live: { ...live, text: live.text + part.text } },
        event: { type: "text", text: part.text },
      };
    case "reasoning-delta":
      return {
        state: { ...state, live: { ...live, reasoning: live.reasoning + part.text } },
        event: { type: "reasoning", text: part.text },
      };
    case "tool-input-start":
      return {
        state: { ...state, live: { ...live, calls: [...live.calls, { id: part.id, name: part.toolName, input: "" }] } },
      };
    case "tool-input-delta": {
      const calls = live.calls.map((call) =>
        call.id === part.id ? { ...call, input: call.input + part.delta } : call,
      );
      return { state: { ...state, live: { ...live, calls } } };
    }
    default:
      return null;
  }
}

export function withOutput(state: ChatState, call: string, text: string): ChatState {
  const all = (state.outputs[call] ?? "") + text;
  // Without the half of a character that the cut may leave.
  const shown = all.slice(-OUTPUT_CHARACTERS_MAX).replace(/^[\uDC00-\uDFFF]/, "");
  return { ...state, outputs: { ...state.outputs, [call]: shown } };
}

export function withoutOutput(state: ChatState, call: string): ChatState {
  const { [call]: _ended, ...outputs } = state.outputs;
  return { ...state, outputs };
}

/** The interruption as plain data. `account`: of the same session. */
export function describeInterruption(
  { turn, lastAt, resumes, how, prompt, answered, draft }: Interruption<ModelMessage>,
  { calls }: Account,
): InterruptionShown {
  const words = cutOffWords(how);
  const text = draft?.text ?? "";
  return { turn, at: lastAt, resumes, how, words, prompt: messageText(prompt.message), answered, text, calls };
}

/** The folder may have been moved or removed since the session was created. */
function missingFolderLines(cwd: string): string[] {
  if (existsSync(cwd)) return [];
  return [`The folder of this session, ${cwd}, does not exist. Tools will not work until it does.`];
}

export function messageText({ content }: ModelMessage): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
