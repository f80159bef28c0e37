import { type StoredMessage, unfit } from "../../admit/admit.ts";
import { invalid, messageIdTaken, promptKnown, queueUnknown } from "../../admit/refusals.ts";
import { type AppendOptions, admitOptions, type PromptOptions } from "../../admit/to-records.ts";
import type { Queued } from "../../conversation/prompt-queue.ts";
import { defined } from "../../defined.ts";
import { newId } from "../../journal/id.ts";
import { handedOut } from "../../view/handed-out.ts";
import type { SessionContext } from "../turn/context.ts";
import { type KeyedPrompt, keyedPrompt, placeOf } from "./prompt-key.ts";

/** Prompts waiting for their turn (R13). The turn delivers them. */
export class Queue<M> {
  readonly #context: SessionContext<M>;

  constructor(context: SessionContext<M>) {
    this.#context = context;
  }

  async put(prompt: M, options: PromptOptions): Promise<Queued<M>> {
    const { log, admission } = this.#context;
    const given = admitOptions(admission, options);
    if (given.state) throw invalid("appState is recorded with a message: give it to startTurn or turn.append");
    const { id = newId() } = given;
    const message = admission.message(prompt);
    // No turn could start with it, so it would stay in the queue forever.
    if (message.role === "assistant") throw unfit("an assistant message is not a prompt");
    const keyed = keyedPrompt(options, [message]);
    return log.inLine(() => this.#put(id, message, given, keyed));
  }

  async #put(
    givenId: string,
    message: StoredMessage,
    { metadata, model }: AppendOptions,
    keyed: KeyedPrompt | null,
  ): Promise<Queued<M>> {
    const { log, admission, conversation } = this.#context;
    this.#context.assertOpen();
    const place = keyed && placeOf(conversation.promptKeys, keyed);
    if (place?.turn !== undefined) throw promptKnown(this.#context.id, keyed!.given, place.turn);
    const id = place?.queued ?? givenId;
    const known = conversation.queued(id) ?? this.#delivered(id);
    if (known) {
      if (!admission.same(known.prompt, message)) throw messageIdTaken(id);
      await log.journal.flush();
      return handedOut(known);
    }
    const appended = log.append([
      { kind: "queue.put", id, prompt: message.stored, ...defined({ metadata, model }), ...keyed?.recorded },
    ]);
    // It may have been delivered by the time the store answers.
    const queued = conversation.queued(id);
    await appended;
    return handedOut(queued ?? conversation.queued(id) ?? this.#delivered(id)!);
  }

  async withdraw(id: string): Promise<void> {
    const { log, conversation } = this.#context;
    await log.inLine(() => {
      if (!conversation.queued(id)) throw queueUnknown(id);
      return log.append([{ kind: "queue.take", id, withdrawn: true }]);
    });
  }

  /** A queued prompt that is now part of the conversation. */
  #delivered(id: string): Queued<M> | null {
    const entry = this.#context.conversation.find(id)?.entry;
    return entry ? Object.freeze({ id, prompt: entry.message, at: entry.at, metadata: entry.metadata }) : null;
  }
}
