import type { Admission, StoredMessage } from "../admit/admit.ts";
import { toAdmitted, toRecords } from "../admit/to-records.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { SessionRecord } from "../conversation/records/records.ts";
import { howOf, openCalls } from "../view/interruption.ts";
import { closingResult, leaveTurn } from "../view/repairs.ts";

/**
 * The unit of a prompt in an array, with the messages that precede it. Calls of the previous turn are closed, unless
 * the array holds their results. There is no boundary, and streamed text is kept for people only: the array holds
 * neither, and the model is asked with the array. Shown later, they would precede reasoning that was signed without
 * them (R1).
 */
export function startUnit<M>(
  conversation: Conversation<M>,
  admission: Admission<M>,
  prompt: readonly StoredMessage[],
): { readonly unit: readonly SessionRecord[]; readonly ids: readonly string[] } {
  const { dialect } = conversation;
  const number = conversation.turns + 1;
  const { ids, records } = toRecords(conversation, admission, toAdmitted(prompt), number, {});
  const asked = prompt.findIndex(({ role }) => role === "user");
  const results = prompt.flatMap((message) => dialect.results(admission.decoded(message)));
  const answered = new Set(results.map(({ call }) => call));
  const unit: SessionRecord[] = leaveTurn(conversation);
  unit.push(...repairsForOpenCalls(conversation, answered), ...cutOffWords(conversation));
  unit.push({ kind: "turn.started", turn: number, prompt: ids[Math.max(asked, 0)]! }, ...records);
  return { unit, ids };
}

/**
 * Continues the last turn with what the array has after it. The turn may have completed: the items of one response can
 * arrive one by one. `close`: the array holds the results that the view synthesized for calls without one; otherwise
 * those calls stay open for the array's results.
 */
export function resumeUnit<M>(conversation: Conversation<M>, close: boolean): readonly SessionRecord[] {
  const turn = conversation.turn!;
  const { number, resumes } = turn;
  const n = howOf(turn).kind === "completed" ? resumes : resumes + 1;
  return [...(close ? repairsForOpenCalls(conversation, new Set()) : []), { kind: "turn.resumed", turn: number, n }];
}

/** With the words that the view of the interrupted turn shows. */
function repairsForOpenCalls<M>(conversation: Conversation<M>, answered: ReadonlySet<string>): SessionRecord[] {
  const { turn, dialect } = conversation;
  if (!turn) return [];
  const how = howOf(turn);
  const entries = openCalls(conversation).flatMap((call) =>
    answered.has(call.id) ? [] : closingResult(dialect, call, how),
  );
  return entries.length > 0 ? [{ kind: "repair", turn: turn.number, entries }] : [];
}

/** The streamed text of an answer that never arrived. */
function cutOffWords<M>({ turn, dialect, draft }: Conversation<M>): SessionRecord[] {
  const words = draft ? dialect.incomplete(draft.content.text) : null;
  if (!turn || !draft || words === null || howOf(turn).kind === "completed") return [];
  const message = dialect.encode ? dialect.encode(words) : (words as never);
  const { id } = draft;
  const metadata = { hiddenFromModel: true };
  const { number } = turn;
  return [{ kind: "message", id, turn: number, step: id, message, metadata, synthetic: "draft", incomplete: true }];
}
