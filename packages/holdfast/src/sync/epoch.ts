import type { Admission, StoredMessage } from "../admit/admit.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { isShown } from "../conversation/item.ts";
import type { SessionRecord } from "../conversation/records.ts";
import { isHoldfastError } from "../errors.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { ReplaceOptions } from "../replace/epoch.ts";
import type { Given } from "../replace/retained.ts";
import type { GivenArray } from "./given-array.ts";
import { isAnswer, planNew, type SyncStep, type TurnNow } from "./plan.ts";
import { planRewrite, type Rewrite, type RewriteParts, tornApart } from "./rewrite.ts";
import { appendUnit, resumeUnit, startUnit, type Unit } from "./units.ts";

/** The records of a new epoch with these entries. Throws what `replace` throws. */
export type Replace<M> = (
  entries: readonly Given<M>[],
  options: Pick<ReplaceOptions, "reason" | "renewed">,
) => readonly SessionRecord[];

export interface EpochParts<M> extends RewriteParts<M> {
  readonly conversation: Conversation<M>;
  /** An empty one, in the same dialect. */
  readonly ahead: Conversation<M>;
  readonly admission: Admission<M>;
  /** The turn that is open, and the id of its prompt. */
  readonly turn: { readonly number: number; readonly prompt: string } | null;
  /** The last message still grows. */
  readonly open: boolean;
  /** The array holds results that were made up, and are not recorded yet. */
  readonly holdsRepairs: boolean;
  /** What was started after this seq runs now. */
  readonly since: number;
  /** The id of the draft that these messages finish. */
  draftFor(span: Span): string | undefined;
}

type Span = { readonly from: number; readonly to: number };

/** A new epoch, and what it makes of the array and the turn. */
export interface WrittenEpoch<M> {
  readonly plan: Rewrite<M>;
  readonly records: readonly SessionRecord[];
  /** Of the messages behind those that are carried. */
  readonly ids: readonly string[];
  /** The number of a turn that began in it, or went on, and is open. */
  readonly opened: number | null;
  /** The turn that was open is not any more. */
  readonly isTurnOver: boolean;
  /** The assistant has spoken behind what is carried. */
  readonly hasAnswer: boolean;
}

/**
 * One epoch, with all of the array in it: what is new stands behind what is carried, in the records that it would have been appended by. Were it appended later, a kill between the two would take what had been acknowledged, and is in the array
 * in other words.
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

/** What comes behind the epoch, made as if the epoch were there already. */
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
    const [ids, opened, isTurnOver, hasAnswer] = [this.#ids, this.#opened, this.#isTurnOver, this.#hasAnswer];
    return { ids, opened, isTurnOver, hasAnswer };
  }

  add({ cut, reason }: Rewrite<M>): void {
    const { turn, open, comparison, dialect } = this.#parts;
    // Of a turn whose prompt was taken back nothing is left to go on with. A compaction may well drop it, and goes on.
    if (turn && reason !== "compaction" && !this.#ahead.find(turn.prompt)) this.#end();
    const now = turnNow(this.#ahead, this.#isOpen);
    for (const step of planNew(comparison.array.contents(cut), cut, { dialect, turn: now, open })) {
      // A message that still grows is streamed behind the epoch.
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

/** How the last turn stands when messages come in. `isOpen`: it is open in this process. */
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
