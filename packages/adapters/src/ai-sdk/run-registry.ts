import type { ModelMessage } from "ai";
import type { Turn } from "holdfast";
import type { RunState } from "./run.ts";
import type { Run } from "./surface.ts";

/** More than ever run at once. */
const KEPT = 32;

/**
 * Finds the run that a result of the SDK belongs to. The result does not say, and an agent's call begins its run only
 * after it has returned a promise. It is the first run that asked the model in the open turn, was not claimed by
 * another result, and did not begin before the newest run at that time.
 */
export class RunRegistry {
  readonly #begun: RunState[] = [];
  readonly #claimed = new WeakSet<RunState>();
  /** By result: a caller may ask twice. */
  readonly #known = new WeakMap<object, RunState>();
  readonly #watchers = new Set<() => void>();

  add(run: RunState): void {
    this.#begun.push(run);
    if (this.#begun.length > KEPT) this.#begun.shift();
    run.stopped.addEventListener("abort", () => {
      for (const watcher of this.#watchers) watcher();
    });
  }

  /** Calls back whenever a run fails. Returns a function that stops this. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Call it when the run is over. */
  claim(result: Run, turn: Turn<ModelMessage> | null): () => RunState | null {
    const from = this.#begun.at(-1);
    return () => {
      const known = this.#known.get(result);
      if (known) return known;
      const at = from ? this.#begun.indexOf(from) : 0;
      const free = this.#begun.slice(Math.max(0, at)).filter((run) => !this.#claimed.has(run));
      const own = free.filter((run) => turn === null || run.turn === turn);
      const found = own.find(({ asked, failure }) => asked || failure) ?? own.at(-1) ?? null;
      if (!found) return null;
      this.#claimed.add(found);
      this.#known.set(result, found);
      return found;
    };
  }
}
