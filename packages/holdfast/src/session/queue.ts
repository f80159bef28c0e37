import { newId } from "../journal/id.ts";
import type { Host } from "./host.ts";
import { asMessageError, type StoredMessage } from "./intake.ts";
import { messageIdTaken, queueUnknown } from "./refusals.ts";
import type { AppendOptions, Queued } from "./surface.ts";
import { assertId, keptAsItIs, keptOptions, takenIn } from "./unit.ts";

/** Prompts that wait for their turn (R13). Delivery is the turn's own. */
export class Queue<M> {
  readonly #host: Host<M>;

  constructor(host: Host<M>) {
    this.#host = host;
  }

  async put(prompt: M, options: AppendOptions): Promise<Queued<M>> {
    const { log, intake } = this.#host;
    const { id = newId() } = options;
    assertId(id);
    try {
      const taken = takenIn(intake, [prompt]);
      const [message] = (log.isBehind ? keptAsItIs(taken) : taken).stored;
      const along = log.isBehind ? keptOptions(options) : options;
      return await log.inLine(() => this.#put(id, message!, along));
    } catch (error) {
      throw asMessageError(error);
    }
  }

  async #put(id: string, message: StoredMessage, { metadata, model }: AppendOptions): Promise<Queued<M>> {
    const { log, intake, conversation } = this.#host;
    this.#host.assertOpen();
    const known = conversation.queued(id) ?? this.#delivered(id);
    if (known) {
      if (!intake.same(known.prompt, message)) throw messageIdTaken(id);
      await log.journal.flush();
      return known;
    }
    const given = {
      ...(metadata ? { metadata: intake.metadata(metadata) } : {}),
      ...(model === undefined ? {} : { model }),
    };
    const appended = log.append([{ kind: "queue.put", id, prompt: message.stored, ...given }]);
    // It may have been delivered by the time at which the store answers.
    const queued = conversation.queued(id);
    await appended;
    return queued ?? conversation.queued(id) ?? this.#delivered(id)!;
  }

  async withdraw(id: string): Promise<void> {
    const { log, conversation } = this.#host;
    await log.inLine(() => {
      if (!conversation.queued(id)) throw queueUnknown(id);
      return log.append([{ kind: "queue.take", id, withdrawn: true }]);
    });
  }

  /** What had been queued, and is part of the conversation now. */
  #delivered(id: string): Queued<M> | null {
    const entry = this.#host.conversation.find(id)?.entry;
    return entry ? Object.freeze({ id, prompt: entry.message, at: entry.at, metadata: entry.metadata }) : null;
  }
}
