import type { ModelMessage } from "ai";
import type { CloseOptions, Session } from "holdfast";
import { Answer, type AnswerParts } from "./answer.ts";

interface ChatPlace {
  /** Keeps requests away while the chat decides whether it is done. */
  inOrder<T>(act: () => Promise<T>): Promise<T>;
  /** Lets the next server begin with the queue. The session is closed. */
  handOverQueue(): Promise<void>;
  onClosed(): void;
}

/** A chat whose session is open here: it answers one prompt after another, and closes the session. */
export class ActiveChat {
  readonly session: Session<ModelMessage>;
  readonly #parts: AnswerParts;
  readonly #place: ChatPlace;
  /** Requests whose prompts are in the queue, by the prompt's id. */
  readonly #waiting = new Map<string, PromiseWithResolvers<Answer | null>>();
  #current: Answer;
  #closing: CloseOptions | null = null;
  /** What follows the current answer; null if nothing does. */
  #next = Promise.withResolvers<Answer | null>();
  /** The session is closed. Never rejects. */
  readonly closed: Promise<void>;

  /** In a session with an open turn. */
  constructor(parts: AnswerParts, place: ChatPlace) {
    this.#parts = parts;
    this.session = parts.session;
    this.#place = place;
    this.#current = new Answer(parts);
    this.closed = this.#work();
  }

  get current(): Answer {
    return this.#current;
  }

  /** The answer in progress, or the next one if that is over; null if none follows. */
  async running(): Promise<Answer | null> {
    return this.#current.isOver ? this.#next.promise : this.#current;
  }

  /** The answer to this prompt, when its turn comes; null if it is over. */
  answerTo(prompt: string): Promise<Answer | null> {
    if (this.#current.prompt === prompt) return Promise.resolve(this.#current);
    if (!this.session.queue.some(({ id }) => id === prompt)) return Promise.resolve(null);
    const waiting = this.#waiting.get(prompt) ?? Promise.withResolvers<Answer | null>();
    this.#waiting.set(prompt, waiting);
    return waiting.promise;
  }

  /** Ends the current answer, as the options say; no other follows. Never rejects. */
  async close(options: CloseOptions): Promise<void> {
    this.#closing = options;
    await this.session.close(options).catch(this.#parts.onFailure);
    await this.closed;
  }

  async #work(): Promise<void> {
    for (let isDone = false; !isDone; ) {
      await this.#current.finished;
      isDone = await this.#place.inOrder(() => this.#moveOn());
      this.#next.resolve(isDone ? null : this.#current);
      this.#next = Promise.withResolvers();
    }
    for (const { resolve } of this.#waiting.values()) resolve(null);
  }

  /** Begins the next answer, or closes the session. Never rejects. */
  async #moveOn(): Promise<boolean> {
    try {
      const [queued] = this.session.queue;
      if (queued && !this.#closing) {
        await this.session.startTurn(queued);
        this.#current = new Answer(this.#parts);
        this.#waiting.get(queued.id)?.resolve(this.#current);
        this.#waiting.delete(queued.id);
        return false;
      }
    } catch (error) {
      this.#parts.onFailure(error);
    }
    const { onFailure } = this.#parts;
    // Who closes it reports its failure.
    await this.session.close().catch((error: unknown) => this.#closing ?? onFailure(error));
    if (this.#closing?.handOver && this.session.queue.length > 0) await this.#place.handOverQueue().catch(onFailure);
    this.#place.onClosed();
    return true;
  }
}
