import type { Conversation } from "../conversation/conversation.ts";
import { isShown } from "../conversation/item.ts";
import type { Dialect } from "../dialects/dialect.ts";

/** The state of the last turn when messages arrive. */
export type TurnNow =
  /** There is no turn yet. */
  | "none"
  /** It is over, completed or cut off. */
  | "over"
  /** It is open, and the model or a tool speaks next. */
  | "open"
  /** It is open, and its last message is an answer without calls. */
  | "answered";

/** `isOpen`: the last turn is open in this process. */
export function turnNow<M>({ turn, items, dialect }: Conversation<M>, isOpen: boolean): TurnNow {
  if (!isOpen) return turn === null ? "none" : "over";
  const last = items.findLast(isShown);
  const response: M[] = [];
  for (let at = items.length - 1; at >= 0 && last; at--) {
    const item = items[at]!;
    if (!isShown(item)) continue;
    if (item.entry.step !== last.entry.step) break;
    response.unshift(item.entry.message);
  }
  return isAnswer(response, dialect) ? "answered" : "open";
}

/** What to do with the array's new messages from `from` (inclusive) to `to` (exclusive). */
export type SyncStep =
  /** Starts a turn with a prompt and the messages that precede it. */
  | { readonly kind: "start"; readonly from: number; readonly to: number }
  /** Records messages from before any turn, such as a greeting from the assistant. */
  | { readonly kind: "import"; readonly from: number; readonly to: number }
  /** Resumes the last turn, which was over. */
  | { readonly kind: "resume" }
  /** One unit of the open turn. `end`: it also ends the turn. */
  | { readonly kind: "append"; readonly from: number; readonly to: number; readonly end?: true }
  /** The assistant's last messages; the very last is still growing. */
  | { readonly kind: "draft"; readonly from: number; readonly to: number }
  | { readonly kind: "end" };

type Speech<M> = Pick<Dialect<M>, "role" | "calls" | "results">;

/**
 * What a sync does with the messages after the known ones (R14 a, e, h). A prompt starts a turn, or steers an open,
 * unanswered one. Consecutive assistant messages are one response and one unit (R3). An answer without calls ends the
 * turn. System messages between turns wait for the next prompt and are recorded with it; so are results that the
 * application gives for calls of a turn that is over.
 */
export function planNew<M>(
  messages: readonly M[],
  known: number,
  { dialect, turn, open }: { dialect: Speech<M>; turn: TurnNow; open: boolean },
): SyncStep[] {
  const steps: SyncStep[] = [];
  const roleOf = (at: number): ReturnType<Speech<M>["role"]> => {
    const message = messages[at]!;
    const role = dialect.role(message);
    // A person's decision about a call is not a prompt: the turn that asked continues (R7).
    return role === "user" && dialect.results(message).length > 0 ? "tool" : role;
  };
  let now = turn;
  /** Messages from here on wait for what follows them. */
  let waiting = known;
  const goOn = (at: number): void => {
    if (now === "over") steps.push({ kind: "resume" });
    if (now === "none") steps.push({ kind: "import", from: waiting, to: at });
    else for (let from = waiting; from < at; from++) steps.push({ kind: "append", from, to: from + 1 });
    if (now !== "none") now = "open";
    waiting = at;
  };

  // In one unit with the answer, unless the answer is already recorded: a crash in between would leave the turn
  // answered but not ended.
  const end = (): void => {
    const last = steps.at(-1);
    if (last?.kind === "append") steps[steps.length - 1] = { ...last, end: true };
    else steps.push({ kind: "end" });
  };

  for (let at = known, to = at; at < messages.length; at = to) {
    const role = roleOf(at);
    to = at + 1;
    if (role === "user" && now !== "open") {
      if (now === "answered") end();
      steps.push({ kind: "start", from: waiting, to });
      now = "open";
      waiting = to;
    } else if (role === "assistant") {
      while (to < messages.length && roleOf(to) === "assistant") to += 1;
      const isGrowing = open && to === messages.length;
      // Without a turn, a draft has nothing to belong to.
      if (isGrowing && now === "none") return steps;
      if (now === "none") {
        goOn(to);
        continue;
      }
      goOn(at);
      steps.push({ kind: isGrowing ? "draft" : "append", from: at, to });
      if (isGrowing) return steps;
      now = isAnswer(messages.slice(at, to), dialect) ? "answered" : "open";
      waiting = to;
    } else if (now === "open" || (now === "answered" && role === "tool")) {
      goOn(to);
    }
  }
  // Results at the end of a turn that is over: the model is about to be asked.
  for (let at = waiting; at < messages.length; at++) if (roleOf(at) === "tool") goOn(at + 1);
  if (now === "answered" && !open) end();
  return steps;
}

/**
 * Whether the model has spoken and waits for nothing: neither the agent's tools nor the provider's, which continue by
 * themselves (R8).
 */
function isAnswer<M>(response: readonly M[], dialect: Speech<M>): boolean {
  const last = response.at(-1);
  if (last === undefined || dialect.role(last) !== "assistant") return false;
  const results = new Set(response.flatMap((message) => dialect.results(message).map(({ call }) => call)));
  return response.every((message) =>
    dialect.calls(message).every(({ id, by }) => by === "provider" && results.has(id)),
  );
}
