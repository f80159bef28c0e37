import type { ModelMessage } from "ai";
import type { Session } from "holdfast";
import { Answer, type AnswerParts } from "./answer.ts";

/** A chat whose session is open here: it answers one prompt after another, and closes the session. */
export class ActiveChat {
  readonly session: Session<ModelMessage>;
  readonly #parts: AnswerParts;
  readonly #inOrder: <T>(act: () => Promise<T>) => Promise<T>;
  /** Requests whose prompts are in the queue, by the prompt's id. */
  readonly #waiting = new Map<string, PromiseWithResolvers<Answer | null>>();
  #current: Answer;
  /** What follows the current answer; null if nothing does. */
  #next = Promise.withResolvers<Answer | null>();
  /** The session is closed. Never rejects. */
  readonly closed: Promise<void>;

  /** In a session with an open turn. `inOrder` keeps requests away while it decides whether it is done. */
  constructor(parts: AnswerParts, inOrder: <T>(act: () => Promise<T>) => Promise<T>, onClosed: () => void) {
    this.#parts = parts;
    this.session = parts.session;
    this.#inOrder = inOrder;
    this.#current = new Answer(parts);
    this.closed = this.#work(onClosed);
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

  async #work(onClosed: () => void): Promise<void> {
    for (let isDone = false; !isDone; ) {
      await this.#current.finished;
      isDone = await this.#inOrder(() => this.#moveOn(onClosed));
      this.#next.resolve(isDone ? null : this.#current);
      this.#next = Promise.withResolvers();
    }
    for (const { resolve } of this.#waiting.values()) resolve(null);
  }

  /** Begins the next answer, or closes the session. Never rejects. */
  async #moveOn(onClosed: () => void): Promise<boolean> {
    try {
      const [queued] = this.session.queue;
      if (queued) {
        await this.session.startTurn(queued);
        this.#current = new Answer(this.#parts);
        this.#waiting.get(queued.id)?.resolve(this.#current);
        this.#waiting.delete(queued.id);
        return false;
      }
    } catch (error) {
      this.#parts.onFailure(error);
    }
    await this.session.close().catch(this.#parts.onFailure);
    onClosed();
    return true;
  }
}
