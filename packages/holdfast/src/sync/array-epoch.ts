import type { Admission, StoredMessage } from "../admit/admit.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { isShown } from "../conversation/item.ts";
import type { SessionRecord } from "../conversation/records.ts";
import { isHoldfastError } from "../errors.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { ReplaceOptions } from "../replace/epoch.ts";
import type { ReplaceInput } from "../replace/retained.ts";
import type { GivenArray } from "./given-array.ts";
import { isAnswer, planNew, type SyncStep, type TurnNow } from "./new-messages.ts";
import { planRewrite, type Rewrite, type RewriteParts, tornApart } from "./rewrite.ts";
import { appendUnit, resumeUnit, startUnit, type Unit } from "./units.ts";

/** The records of a new epoch with these entries. Throws what `replace` throws. */
export type Replace<M> = (
  entries: readonly ReplaceInput<M>[],
  options: Pick<ReplaceOptions, "reason" | "renewed">,
) => readonly SessionRecord[];

export interface EpochParts<M> extends RewriteParts<M> {
  readonly conversation: Conversation<M>;
  /** An empty conversation in the same dialect. */
  readonly ahead: Conversation<M>;
  readonly admission: Admission<M>;
  /** The open turn, and the id of its prompt. */
  readonly turn: { readonly number: number; readonly prompt: string } | null;
  /** The last message is still growing. */
  readonly open: boolean;
  /** The array holds synthesized results that are not recorded yet. */
  readonly holdsRepairs: boolean;
  /** Tools started after this seq are running now. */
  readonly since: number;
  /** The id of the draft that these messages finish. */
  draftFor(span: Span): string | undefined;
}

type Span = { readonly from: number; readonly to: number };

/** A new epoch, and its effect on the array and the turn. */
export interface WrittenEpoch<M> {
  readonly plan: Rewrite<M>;
  readonly records: readonly SessionRecord[];
  /** The ids of the messages after the retained ones. */
  readonly ids: readonly string[];
  /** The number of the turn that it started or resumed, if that turn is open. */
  readonly opened: number | null;
  /** The turn that was open has ended. */
  readonly isTurnOver: boolean;
  /** The assistant has spoken after the retained messages. */
  readonly hasAnswer: boolean;
}

/**
 * One epoch with the whole array in it: new messages follow the retained ones, in the records that would have appended
 * them. If they were appended later, a kill in between could lose acknowledged content that the array holds in other
 * words.
 */
export function epochOfArray<M>(parts: EpochParts<M>, replaced: Replace<M>): WrittenEpoch<M> {
  let plan = planRewrite(parts);
  const carried = (): readonly SessionRecord[] =>
    replaced(plan.entries, { reason: plan.reason, renewed: plan.renewed.byOld });
  let records: readonly SessionRecord[];
  try {
    records = carried();
  } catch (error) {
    if (!isHoldfastError(error, "STEP_SPLIT")) throw error;
    plan = tornApart(plan, parts);
    records = carried();
  }
  const sequel = new Sequel(parts, records);
  sequel.add(plan);
  return { plan, records: sequel.records, ...sequel.state };
}

/** The records after the epoch, built as if the epoch were already written. */
class Sequel<M> {
  readonly records: SessionRecord[] = [];
  readonly #parts: EpochParts<M>;
  readonly #ahead: Conversation<M>;
  readonly #ids: string[] = [];
  #seq: number;
  #isOpen: boolean;
  #isTurnOver = false;
  #hasAnswer = false;
  #opened: number | null = null;

  constructor(parts: EpochParts<M>, epoch: readonly SessionRecord[]) {
    this.#parts = parts;
    this.#ahead = parts.ahead;
    this.#seq = parts.conversation.head;
    this.#isOpen = parts.turn !== null;
    this.#write(epoch);
  }

  get state(): Omit<WrittenEpoch<M>, "plan" | "records"> {
    return { ids: this.#ids, opened: this.#opened, isTurnOver: this.#isTurnOver, hasAnswer: this.#hasAnswer };
  }

  add({ cut, reason }: Rewrite<M>): void {
    const { turn, open, comparison, dialect } = this.#parts;
    // A turn whose prompt was removed cannot continue. A compaction may drop the prompt, and the turn continues.
    if (turn && reason !== "compaction" && !this.#ahead.find(turn.prompt)) this.#end();
    const now = turnNow(this.#ahead, this.#isOpen);
    for (const step of planNew(comparison.array.contents(cut), cut, { dialect, turn: now, open })) {
      // A message that is still growing is streamed after the epoch.
      if (step.kind === "draft" || step.kind === "import") return;
      this.#step(step);
    }
  }

  #step(step: Exclude<SyncStep, { kind: "draft" | "import" }>): void {
    const { admission, holdsRepairs } = this.#parts;
    if (step.kind === "end") this.#end();
    else if (step.kind === "resume") {
      this.#write(resumeUnit(this.#ahead, holdsRepairs));
      this.#open();
    } else if (step.kind === "start") {
      this.#said(startUnit(this.#ahead, admission, storedIn(this.#parts.comparison.array, step)));
      this.#open();
    } else {
      this.#append(step);
      if (step.end) this.#end();
    }
  }

  #append(span: Span): void {
    const { admission, since, comparison, draftFor } = this.#parts;
    const messages = storedIn(comparison.array, span);
    const isAnswers = messages.some(({ role }) => role === "assistant");
    const id = isAnswers && !this.#hasAnswer && this.#opened === null ? draftFor(span) : undefined;
    this.#said(appendUnit(this.#ahead, admission, messages, { since, id }));
    this.#hasAnswer ||= isAnswers;
  }

  #said({ unit, ids }: Unit): void {
    this.#write(unit);
    this.#ids.push(...ids);
  }

  #open(): void {
    this.#isOpen = true;
    this.#opened = this.#ahead.turns;
  }

  #end(): void {
    this.#write([{ kind: "turn.ended", turn: this.#ahead.turns, outcome: "completed" }]);
    this.#isTurnOver ||= this.#opened === null && this.#parts.turn !== null;
    this.#isOpen = false;
    this.#opened = null;
  }

  #write(unit: readonly SessionRecord[]): void {
    const { at } = this.#parts.conversation;
    for (const record of unit) {
      this.#seq += 1;
      this.#ahead.add({ ...record, seq: this.#seq, at } as unknown as JournalRecord);
      this.records.push(record);
    }
  }
}

/** The state of the last turn when messages arrive. `isOpen`: it is open in this process. */
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

export function storedIn<M>(array: GivenArray<M>, { from, to }: Span): StoredMessage[] {
  return Array.from({ length: to - from }, (_, n) => array.held(from + n).stored);
}
