import { unfit } from "../../admit/admit.ts";
import { invalid, messageIdTaken, promptKnown, turnOpen } from "../../admit/refusals.ts";
import {
  type AdmittedMessages,
  type AdmittedOptions,
  admitMessages,
  admitOptions,
  type PromptOptions,
  type StateOptions,
  toRecords,
} from "../../admit/to-records.ts";
import type { Queued } from "../../conversation/prompt-queue.ts";
import type { SessionRecord } from "../../conversation/records/records.ts";
import { isHandedOver } from "../../session-state.ts";
import { interruptionOf } from "../../view/interruption.ts";
import { leaveTurn, repairForPrompt } from "../../view/repairs.ts";
import type { SessionContext } from "../turn/context.ts";
import type { LiveTurn } from "../turn/turn.ts";
import { isOver } from "./answer.ts";
import { type KeyedPrompt, keyedPrompt, placeOf } from "./prompt-key.ts";

/** What a session does for a prompt. */
export interface PromptSession<M> {
  /** The open turn. */
  turn(): LiveTurn<M> | null;
  /** Records the unit that opens this turn. */
  open(number: number, unit: readonly SessionRecord[]): Promise<LiveTurn<M>>;
  resume(): Promise<LiveTurn<M>>;
}

/** How turns start. A prompt that is recorded already, by its key or its id, gets no second turn. */
export class Prompts<M> {
  readonly #context: SessionContext<M>;
  readonly #session: PromptSession<M>;

  constructor(context: SessionContext<M>, session: PromptSession<M>) {
    this.#context = context;
    this.#session = session;
  }

  /** Copies what is given. Call the function that it returns when the conversation has caught up. */
  admit(prompt: M | M[] | Queued<M>, options: PromptOptions & StateOptions): () => Promise<LiveTurn<M>> {
    const { admission } = this.#context;
    const admitted = admitMessages(admission, prompt);
    const given = admitOptions(admission, options);
    const keyed = keyedPrompt(options, admitted.stored);
    if (keyed && admitted.queued !== null) throw invalid("a queued prompt has the key that it was queued with");
    return () => this.#start(admitted, given, keyed);
  }

  async #start(given: AdmittedMessages, options: AdmittedOptions, keyed: KeyedPrompt | null): Promise<LiveTurn<M>> {
    this.#context.assertOpen();
    const { conversation, admission } = this.#context;
    const known = keyed && placeOf(conversation.promptKeys, keyed);
    if (known?.turn !== undefined) return this.#startKnown(known.turn, keyed!.given);
    const { id: _, ...others } = options;
    // It waits in the queue, and is delivered from there.
    const [prompt, by] = known ? [{ ...given, queued: known.queued }, others] : [given, options];
    const open = this.#session.turn();
    if (open) return this.#again(prompt, by, open);
    const number = conversation.turns + 1;
    const items = toRecords(conversation, admission, prompt, number, by);
    if (items.known) return this.#startAgain(items.known.id);
    if (prompt.isAnswer) throw unfit("a turn cannot start with an assistant message");
    const entries = repairForPrompt(conversation);
    const unit: SessionRecord[] = leaveTurn(conversation);
    if (entries.length > 0) unit.push({ kind: "repair", turn: conversation.turn?.number ?? number, entries });
    const key = known === null ? keyed?.recorded : undefined;
    unit.push({ kind: "turn.started", turn: number, prompt: items.ids[prompt.prompt]!, ...key }, ...items.records);
    return this.#session.open(number, unit);
  }

  /** The same prompt again, by its key. A turn that is over, or waits for a person, is not touched. */
  async #startKnown(turn: number, key: string): Promise<LiveTurn<M>> {
    const { conversation, log, id } = this.#context;
    const open = this.#session.turn();
    if (open?.number === turn) {
      await log.journal.flush();
      return open;
    }
    const last = conversation.turn;
    const isCutOff = last?.number === turn && (!last.suspended || isHandedOver(last.suspended)) && !isOver(last);
    if (open || !isCutOff) throw promptKnown(id, key, turn);
    return this.#session.resume();
  }

  /** The same prompt again, by its id: a retry from a caller that could not know it was recorded (R15). */
  async #again(prompt: AdmittedMessages, options: AdmittedOptions, open: LiveTurn<M>): Promise<LiveTurn<M>> {
    const { conversation, admission, log } = this.#context;
    const id = options.id ?? prompt.queued;
    if (id === null || this.#stepOf(id) !== open.prompt.step) throw turnOpen(this.#context.id, open.number);
    const { known } = toRecords(conversation, admission, prompt, open.number, options);
    if (!known) throw turnOpen(this.#context.id, open.number);
    await log.journal.flush();
    return open;
  }

  async #startAgain(id: string): Promise<LiveTurn<M>> {
    const interruption = interruptionOf(this.#context.conversation);
    if (interruption && interruption.prompt.step === this.#stepOf(id)) return this.#session.resume();
    throw messageIdTaken(id, "this prompt is already recorded, and its turn is over");
  }

  #stepOf(id: string): string | undefined {
    return this.#context.conversation.find(id)?.entry.step;
  }
}
