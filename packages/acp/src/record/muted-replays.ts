import { setTimeout as passed } from "node:timers/promises";

/** A replay may go on after the answer to the request for it, as long as each part comes within this time. */
const QUIET_MS = 300;
/** An agent that never stops is not waited for. */
const LONGEST_MS = 10_000;

/** The sessions whose updates are the agent's replay of what we replay ourselves. */
export class MutedReplays {
  /** When the last update of each came. */
  readonly #heardAt = new Map<string, number>();

  isMuted(session: string): boolean {
    return this.#heardAt.has(session);
  }

  /** Whether an update of this session, which came just now, is part of a replay. */
  drops(session: string): boolean {
    if (!this.#heardAt.has(session)) return false;
    this.#heardAt.set(session, performance.now());
    return true;
  }

  /** Drops the updates of this session. The function that it returns waits until no more come, and ends that. */
  mute(session: string): () => Promise<void> {
    this.#heardAt.set(session, performance.now());
    return async () => {
      const answeredAt = performance.now();
      const until = (): number =>
        Math.min(Math.max(answeredAt, this.#heardAt.get(session) ?? 0) + QUIET_MS, answeredAt + LONGEST_MS);
      for (let left = QUIET_MS; left > 0; left = until() - performance.now()) await passed(left);
      this.#heardAt.delete(session);
    };
  }
}
