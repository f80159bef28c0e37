import { type Admission, asMessageError } from "../admit/admit.ts";
import { admitAttributes } from "../admit/attributes.ts";
import { sessionClosed, turnEnded, turnOpen } from "../admit/refusals.ts";
import { admitSuspension, type TrySuspension } from "../admit/suspension.ts";
import { admitMessages, admitNote, idsOf, messageRecords } from "../admit/to-records.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Attributes } from "../conversation/records/attributes.ts";
import type { MessageRecord, SessionRecord, TurnEnded } from "../conversation/records/records.ts";
import { defined } from "../defined.ts";
import type { Journal } from "../journal/contract.ts";
import { newId } from "../journal/id.ts";
import type { Json, NewRecord } from "../journal/record.ts";
import { type OpenCall, openCall, openCalls } from "../view/interruption.ts";
import type { Reading } from "../view/reading.ts";
import { leaveTurn, repairForPrompt, synthesizeResultSaying } from "../view/repairs.ts";
import { pauseRecords, resumedRecord, tryRecord } from "./resume/tries.ts";
import type * as surface from "./surface.ts";
import { InOrder } from "./writing/in-order.ts";

export interface RecorderParts<M> {
  readonly journal: Journal;
  readonly admission: Admission<M>;
  /** What the journal held when it was opened. Not kept. */
  readonly conversation: Conversation<M>;
  /** Folds the journal as it is now. */
  readonly fold: () => Promise<Conversation<M>>;
  /** The same, as a reader sees it. `isActive`: a turn is being worked on. */
  readonly read: (isActive: boolean) => Promise<Reading<M>>;
  readonly onTurnEnd: () => void;
  readonly onClose: () => void;
}

/** Writes a session and keeps nothing of its conversation, so its memory does not grow with the session. */
export class LiveRecorder<M> implements surface.Recorder<M> {
  readonly id: string;
  readonly attributes: Attributes;
  readonly #parts: Omit<RecorderParts<M>, "conversation">;
  /** Closes what an earlier writer left open, in one unit with the next prompt. */
  #leftOpen: readonly SessionRecord[];
  #labels: Record<string, string>;
  #turns: number;
  #turn: number | null = null;
  /** This writer has recorded something of a turn. */
  #hasTurned = false;
  readonly #order = new InOrder();
  #closing: Promise<void> | null = null;

  constructor({ conversation, ...parts }: RecorderParts<M>) {
    this.#parts = parts;
    this.id = parts.journal.id;
    this.attributes = conversation.attributes;
    this.#labels = this.attributes.labels;
    this.#turns = conversation.turns;
    this.#leftOpen = leftOpenIn(conversation);
  }

  get turn(): number | null {
    return this.#turn;
  }
  get turns(): number {
    return this.#turns;
  }

  async startTurn(prompt: M): Promise<void> {
    this.#assertOpen();
    const messages = this.#messages(prompt);
    await this.#order.run(async () => {
      this.#assertNoTurn();
      const turn = this.#turns + 1;
      const records = messages(turn);
      await this.#append([...this.#leftOpen, { kind: "turn.started", turn, prompt: records[0]!.id }, ...records]);
      this.#leftOpen = [];
      this.#turns = turn;
      this.#turn = turn;
      this.#hasTurned = true;
    });
  }

  async claimTurn(worker?: string): Promise<number> {
    this.#assertOpen();
    const by = worker === undefined ? undefined : this.#parts.admission.text(worker);
    return this.#order.run(async () => {
      this.#assertNoTurn();
      const record = tryRecord(this.id, await this.#parts.fold(), this.#hasTurned, by);
      await this.#append([record]);
      this.#hasTurned = true;
      return record.n;
    });
  }

  async resumeTurn(prompt: M, words: (call: OpenCall) => string): Promise<void> {
    this.#assertOpen();
    const messages = this.#messages(prompt);
    await this.#order.run(async () => {
      this.#assertNoTurn();
      const conversation = await this.#parts.fold();
      const resumed = resumedRecord(this.id, conversation);
      const { turn } = resumed;
      const entries = openCalls(conversation).flatMap((call) => {
        const text = this.#parts.admission.words(words(openCall(call)));
        return synthesizeResultSaying(conversation.dialect, call, text, call.state);
      });
      const repair: SessionRecord[] = entries.length > 0 ? [{ kind: "repair", turn, entries }] : [];
      await this.#append([...repair, resumed, ...messages(turn)]);
      this.#leftOpen = [];
      this.#turn = turn;
      this.#hasTurned = true;
    });
  }

  async suspendTurn(why: TrySuspension): Promise<void> {
    this.#assertOpen();
    const suspension = admitSuspension(this.#parts.admission, why);
    await this.#order.run(async () => {
      await this.#append(pauseRecords(this.id, await this.#parts.fold(), suspension));
      this.#leftOpen = leftOpenIn(await this.#parts.fold());
      this.#turn = null;
      this.#hasTurned = true;
      this.#parts.onTurnEnd();
    });
  }

  async append(messages: M | M[]): Promise<void> {
    this.#assertOpen();
    const records = this.#messages(messages);
    await this.#order.run(() => this.#append(records(this.#openTurn())));
  }

  async endTurn(how: surface.TurnEnd, last: M[] = []): Promise<void> {
    this.#assertOpen();
    const messages = last.length === 0 ? () => [] : this.#messages(last);
    await this.#order.run(() => this.#end(how, messages));
  }

  async note(name: string, value: Json): Promise<void> {
    this.#assertOpen();
    const record = admitNote(this.#parts.admission, name, value);
    await this.#order.run(() => this.#append([record]));
  }

  async setLabels(labels: Record<string, string>): Promise<void> {
    this.#assertOpen();
    const { admission } = this.#parts;
    const clean = { text: (text: string) => admission.text(text), path: (path: string) => path };
    const given = { ...labels };
    await this.#order.run(async () => {
      const { labels: all = {} } = admitAttributes({ labels: { ...this.#labels, ...given } }, clean);
      await this.#append([{ kind: "session", labels: all }]);
      this.#labels = all;
    });
  }

  async read(): Promise<Reading<M>> {
    await this.#order.over;
    return this.#parts.read(this.#turn !== null);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(how: surface.TurnEnd, messages: (turn: number) => readonly SessionRecord[]): Promise<void> {
    const turn = this.#openTurn();
    await this.#append([...messages(turn), this.#ended(turn, how)]);
    this.#turn = null;
    this.#parts.onTurnEnd();
  }

  #ended(turn: number, { outcome, by, reason, error }: surface.TurnEnd): TurnEnded {
    const { admission } = this.#parts;
    const words = (text: string | undefined): string | undefined =>
      text === undefined ? undefined : admission.words(String(text));
    return {
      kind: "turn.ended",
      turn,
      outcome,
      ...defined({ by: words(by), reason: words(reason), error: words(error) }),
    };
  }

  /** Checked and copied now; the caller may change the messages afterwards (R19). */
  #messages(given: M | M[]): (turn: number) => MessageRecord[] {
    const { stored } = admitMessages(this.#parts.admission, given);
    return (turn) => messageRecords(stored, idsOf(newId(), stored), turn);
  }

  #assertNoTurn(): void {
    if (this.#turn !== null) throw turnOpen(this.id, this.#turn);
  }

  #openTurn(): number {
    if (this.#turn === null) throw turnEnded(this.id, this.#turns, "the message");
    return this.#turn;
  }

  async #append(unit: readonly SessionRecord[]): Promise<void> {
    try {
      await this.#parts.journal.append(unit as readonly NewRecord[]);
    } catch (error) {
      throw asMessageError(error);
    }
  }

  async #close(): Promise<void> {
    const { journal, onClose } = this.#parts;
    try {
      await this.#order.over;
      if (this.#turn !== null && !journal.failure) await this.#end({ outcome: "aborted", by: "close" }, () => []);
    } finally {
      try {
        await journal.close();
      } finally {
        onClose();
      }
    }
  }

  #assertOpen(): void {
    if (this.#closing) throw sessionClosed(this.id);
  }
}

/** Ends the turn of a writer that died, and its calls. The person sees that in the calls, so no words are added. */
function leftOpenIn<M>(conversation: Conversation<M>): SessionRecord[] {
  const ended = leaveTurn(conversation);
  const entries = repairForPrompt(conversation).filter(({ synthetic }) => synthetic !== "boundary");
  const turn = conversation.turn?.number ?? 1;
  return entries.length > 0 ? [...ended, { kind: "repair", turn, entries }] : ended;
}
