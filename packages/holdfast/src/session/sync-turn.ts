import type { Conversation } from "./conversation.ts";
import type { Host } from "./host.ts";
import type { SessionRecord } from "./records.ts";
import { CALLS, closing, howOf, leaveTurn, openCalls } from "./resume.ts";
import { itemsOf } from "./unit.ts";

/**
 * The unit of a prompt that an array brings, with what stands before it for it. Calls of the turn before are closed, unless the array holds their results. There is no boundary, and what had been streamed
 * is kept for people only: the array holds neither, and the model is asked with the array. Shown later, they would stand before reasoning that was signed without them (R1).
 */
export function startUnit<M>(
  { conversation, intake }: Host<M>,
  prompt: readonly M[],
): { readonly unit: readonly SessionRecord[]; readonly ids: readonly string[] } {
  const { dialect } = conversation;
  const number = conversation.turns + 1;
  const { ids, records } = itemsOf(conversation, intake, prompt, { turn: number });
  const asked = prompt.findIndex((message) => dialect.role(message) === "user");
  const answered = new Set(prompt.flatMap((message) => dialect.results(message).map(({ call }) => call)));
  const unit: SessionRecord[] = leaveTurn(conversation);
  unit.push(...closings(conversation, answered), ...cutOffWords(conversation));
  unit.push({ kind: "turn.started", turn: number, prompt: ids[Math.max(asked, 0)]! }, ...records);
  return { unit, ids };
}

/**
 * The last turn goes on, with what the array has behind it. It may have been completed: the items of one response can come one by one. `close`: the array holds the results that the view made up for calls
 * without one; else those calls stay open for the results that the array is to bring.
 */
export function resumeUnit<M>(conversation: Conversation<M>, close: boolean): readonly SessionRecord[] {
  const turn = conversation.turn!;
  const { number, resumes } = turn;
  const n = howOf(turn).kind === "completed" ? resumes : resumes + 1;
  return [...(close ? closings(conversation, new Set()) : []), { kind: "turn.resumed", turn: number, n }];
}

/** In the words that the view of the interrupted turn shows. */
function closings<M>(conversation: Conversation<M>, answered: ReadonlySet<string>): SessionRecord[] {
  const { turn, dialect } = conversation;
  if (!turn) return [];
  const how = howOf(turn);
  const entries = openCalls(conversation).flatMap((call) =>
    CALLS[call.state].close === "close" && !answered.has(call.id) ? closing(dialect, call, how) : [],
  );
  return entries.length > 0 ? [{ kind: "repair", turn: turn.number, entries }] : [];
}

/** What had been streamed of an answer that never came. */
function cutOffWords<M>({ turn, dialect, draft }: Conversation<M>): SessionRecord[] {
  const words = draft ? dialect.incomplete(draft.content.text) : null;
  if (!turn || !draft || words === null || howOf(turn).kind === "completed") return [];
  const message = dialect.encode ? dialect.encode(words) : (words as never);
  const { id } = draft;
  const metadata = { hiddenFromModel: true };
  const { number } = turn;
  return [{ kind: "message", id, turn: number, step: id, message, metadata, synthetic: "draft", incomplete: true }];
}
