import { type Ending, endsNow, type Guarded } from "../session/guarded.ts";

/** The pending write of each target that cannot write synchronously. */
const writing = new WeakMap<Guarded, Promise<void>>();

/** Never rejects. */
export function writingOf(target: Guarded): Promise<void> {
  return writing.get(target) ?? Promise.resolve();
}

/**
 * The targets to notify of one kind of ending. All guards of a process share one roster: a hundred sessions put one
 * listener on `process`, not a hundred, and only while a target needs it.
 */
export class Roster {
  /** One per call of `guard`: a target guarded twice stays guarded until both guards are released. */
  readonly #posts = new Set<{ readonly target: Guarded }>();
  readonly #start: () => void;
  readonly #stop: () => void;

  /** `start` is called when the first target joins, `stop` when the last one leaves. */
  constructor(start: () => void, stop: () => void) {
    this.#start = start;
    this.#stop = stop;
  }

  get empty(): boolean {
    return this.#posts.size === 0;
  }

  /** Returns a function that leaves the roster. */
  join(target: Guarded): () => void {
    const post = { target };
    this.#posts.add(post);
    if (this.#posts.size === 1) this.#start();
    return () => {
      if (this.#posts.delete(post) && this.empty) this.#stop();
    };
  }

  /**
   * Notifies each target once, all with the same `ending` object. Never throws. Work that is not finished on return
   * (stores that cannot write synchronously) is returned as promises that never reject.
   */
  tell(ending: Ending): Promise<void>[] {
    const pending: Promise<void>[] = [];
    for (const target of new Set([...this.#posts].map((post) => post.target))) {
      try {
        const written = target[endsNow](ending);
        if (written === undefined) continue;
        const settled = Promise.resolve(written).catch(ignore);
        writing.set(target, settled);
        pending.push(settled);
      } catch {
        ignore();
      }
    }
    return pending;
  }
}

/**
 * The process is ending and there is no one left to tell: a journal that cannot be written has already failed loudly,
 * or fails when it is next opened. What matters is that the other targets are still recorded, and that the process ends
 * as it would have.
 */
function ignore(): void {}
