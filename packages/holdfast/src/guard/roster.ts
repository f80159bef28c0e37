import { type Ending, endsNow, type Guarded } from "../session/guarded.ts";

/** What each target that has no synchronous way was last told to write. */
const writing = new WeakMap<Guarded, Promise<void>>();

/** Never rejects. */
export function writingOf(target: Guarded): Promise<void> {
  return writing.get(target) ?? Promise.resolve();
}

/**
 * Those who want to be told of one kind of ending. All guards of a process share one: a hundred sessions put one listener on `process`, not a hundred, and it is there only while somebody wants it.
 */
export class Roster {
  /** One for each call of `guard`: a target that is guarded twice stays guarded until both are released. */
  readonly #posts = new Set<{ readonly target: Guarded }>();
  readonly #start: () => void;
  readonly #stop: () => void;

  /** `start` is called when the first one joins, `stop` when the last one has left. */
  constructor(start: () => void, stop: () => void) {
    this.#start = start;
    this.#stop = stop;
  }

  get empty(): boolean {
    return this.#posts.size === 0;
  }

  /** Returns the way to leave. */
  join(target: Guarded): () => void {
    const post = { target };
    this.#posts.add(post);
    if (this.#posts.size === 1) this.#start();
    return () => {
      if (this.#posts.delete(post) && this.empty) this.#stop();
    };
  }

  /**
   * Tells each target once, the same `ending` object to all of them. Never throws. What cannot be done when this returns (stores without a synchronous way) comes back as promises, which never reject.
   */
  tell(ending: Ending): Promise<void>[] {
    const pending: Promise<void>[] = [];
    for (const target of new Set([...this.#posts].map((post) => post.target))) {
      try {
        const written = target[endsNow](ending);
        if (written === undefined) continue;
        const settled = Promise.resolve(written).catch(failed);
        writing.set(target, settled);
        pending.push(settled);
      } catch {
        failed();
      }
    }
    return pending;
  }
}

/**
 * The process is ending and there is nobody left to tell: a journal that cannot be written to has failed loudly before, or fails the next time it is opened. What matters is that
 * the other targets are still recorded, and that the process ends as it would have ended.
 */
function failed(): void {}
