import { setTimeout as sleep } from "node:timers/promises";
import type { ModelMessage } from "ai";
import { idFrom, isHoldfastError, type Reading, type Session, type Store } from "holdfast";
import { notFound, stopping } from "./problem.ts";
import type { DurableChatOptions } from "./surface.ts";

/** The label of a session that names its chat. */
const LABEL = "chat";
const OPEN_TRIES = 10;
const OPEN_PAUSE_MS = 100;

export function sessionIdOf(chat: string): string {
  return idFrom(`ai-sdk chat ${chat}`);
}

/** The sessions of chats in the store. */
export class ChatSessions {
  readonly #store: Store;
  readonly #options: DurableChatOptions;
  readonly #onFailure: (error: unknown) => void;
  /** This server opens no sessions any more. */
  isClosed = false;

  constructor(store: Store, options: DurableChatOptions, onFailure: (error: unknown) => void) {
    this.#store = store;
    this.#options = options;
    this.#onFailure = onFailure;
  }

  /** Throws SESSION_BUSY while another server has it, and a refusal if there is no such chat. */
  async open(chat: string, { mayCreate = false } = {}): Promise<Session<ModelMessage>> {
    if (this.isClosed) throw stopping();
    const store = this.#store;
    const id = sessionIdOf(chat);
    for (let tries = 1; ; tries++) {
      try {
        const session = await store.resume<ModelMessage>(id, { dialect: "ai-sdk" });
        // The process that created it may have been killed before it had told the application.
        const isNew = mayCreate && session.entries.length + session.queue.length === 0;
        return isNew ? this.#announce(chat, session) : session;
      } catch (error) {
        if (!isHoldfastError(error, "SESSION_NOT_FOUND")) throw error;
        if (!mayCreate) throw notFound();
      }
      try {
        const session = await store.create<ModelMessage>({ dialect: "ai-sdk", id, labels: { [LABEL]: chat } });
        return this.#announce(chat, session);
      } catch (error) {
        if (!isHoldfastError(error, "SESSION_EXISTS") || tries >= OPEN_TRIES) throw error;
      }
    }
  }

  /** The chat was closed with a prompt whose turn had not come: the next server continues with it. */
  async handOverQueue(chat: string): Promise<void> {
    try {
      const session = await this.#store.resume<ModelMessage>(sessionIdOf(chat), { dialect: "ai-sdk" });
      const [queued] = session.queue;
      await this.closingOnError(session, async () => {
        if (queued && !session.interruption) await session.startTurn(queued);
        await session.close({ handOver: true });
      });
    } catch (error) {
      // The next server has it already.
      if (!isHoldfastError(error, "SESSION_BUSY")) throw error;
    }
  }

  async #announce(chat: string, session: Session<ModelMessage>): Promise<Session<ModelMessage>> {
    await this.closingOnError(session, async () => this.#options.onCreate?.({ id: chat, session }));
    return session;
  }

  async closingOnError<T>(session: Session<ModelMessage>, act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      await session.close().catch(this.#onFailure);
      throw error;
    }
  }

  /** The conversation, if this prompt is in it. Throws KEY_TAKEN if it had another text. */
  async known(chat: string, key: string, content: string): Promise<Reading<ModelMessage> | null> {
    try {
      const made = await this.#store.once(sessionIdOf(chat), key, content);
      return made && (await this.read(chat));
    } catch (error) {
      if (isHoldfastError(error, "SESSION_NOT_FOUND")) return null;
      throw error;
    }
  }

  /** Null if there is no such chat. */
  async read(chat: string): Promise<Reading<ModelMessage> | null> {
    try {
      return await this.#store.read<ModelMessage>(sessionIdOf(chat), { dialect: "ai-sdk" });
    } catch (error) {
      if (isHoldfastError(error, "SESSION_NOT_FOUND")) return null;
      throw error;
    }
  }
}

/** Another server may be about to free the session. */
export async function whileBusy<T>(act: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await act();
    } catch (error) {
      if (!isHoldfastError(error, "SESSION_BUSY") || tries >= OPEN_TRIES) throw error;
      await sleep(OPEN_PAUSE_MS);
    }
  }
}
