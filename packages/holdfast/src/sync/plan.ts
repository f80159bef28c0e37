import type { Dialect } from "../dialects/dialect.ts";

/** How the last turn stands when messages come in. */
export type TurnNow =
  /** There has been none. */
  | "none"
  /** It is over, completed or cut off. */
  | "over"
  /** It is open, and the model or a tool is to speak next. */
  | "open"
  /** It is open, and its last message is an answer without calls. */
  | "answered";

/** What becomes of the new messages of an array, from `from` up to and without `to`. */
export type SyncStep =
  /** A prompt, and what stands before it for it, begins a turn. */
  | { readonly kind: "start"; readonly from: number; readonly to: number }
  /** Said before there was any turn: a greeting of the assistant's, say. */
  | { readonly kind: "import"; readonly from: number; readonly to: number }
  /** The last turn goes on, though it was over. */
  | { readonly kind: "resume" }
  /** One unit of the open turn. `end`: it also ends the turn. */
  | { readonly kind: "append"; readonly from: number; readonly to: number; readonly end?: true }
  /** The assistant's last messages, of which the very last still grows. */
  | { readonly kind: "draft"; readonly from: number; readonly to: number }
  | { readonly kind: "end" };

type Speech<M> = Pick<Dialect<M>, "role" | "calls" | "results">;

/**
 * What a sync does about the messages behind those that are known (R14 a, e, h). A prompt begins a turn, and steers one that is open and not answered; messages of the assistant's in a row are one response, and one unit (R3);
 * an answer without calls ends the turn. What the system says between turns waits for the prompt that it stands before, and goes along with it; so do results that the application gives to the calls of a turn that is over.
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
    // What a person decides of a call is no prompt: the turn that asked goes on (R7).
    return role === "user" && dialect.results(message).length > 0 ? "tool" : role;
  };
  let now = turn;
  /** From here on, messages wait for what comes behind them. */
  let waiting = known;
  const goOn = (at: number): void => {
    if (now === "over") steps.push({ kind: "resume" });
    if (now === "none") steps.push({ kind: "import", from: waiting, to: at });
    else for (let from = waiting; from < at; from++) steps.push({ kind: "append", from, to: from + 1 });
    if (now !== "none") now = "open";
    waiting = at;
  };

  // In one unit with the answer, unless that is recorded already: a crash in between would leave a turn that is answered and not over.
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
      // Without any turn there is nothing that a draft could belong to.
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

/** The model has spoken, and waits for nobody: no tool of the agent's, and none of the provider's, which goes on by itself (R8). */
export function isAnswer<M>(response: readonly M[], dialect: Speech<M>): boolean {
  const last = response.at(-1);
  if (last === undefined || dialect.role(last) !== "assistant") return false;
  const results = new Set(response.flatMap((message) => dialect.results(message).map(({ call }) => call)));
  return response.every((message) =>
    dialect.calls(message).every(({ id, by }) => by === "provider" && results.has(id)),
  );
}
