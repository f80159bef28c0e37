import { HoldfastError } from "holdfast";
import type { SavedCheckpoint, ThreadState } from "./state.ts";

/** Checkpoints that were asked for by id, per thread. */
const READS_MAX = 1024;

interface NewCheckpoint {
  readonly threadId: string;
  readonly ns: string;
  readonly parent: string | undefined;
  readonly id: string;
}

/**
 * What this process has read of a thread, to tell a run that continues an old checkpoint on purpose (time travel) from
 * one that does so because another run was faster.
 */
export class HeadReads {
  /** Asked for by id when another one was the latest: a run may branch off there. */
  readonly #byId = new Set<string>();
  /** Namespaces that were found empty. */
  readonly #empty = new Set<string>();

  note(ns: string, id: string, found: SavedCheckpoint | undefined, latest: SavedCheckpoint | undefined): void {
    if (id === "") {
      if (found) this.#empty.delete(ns);
      else this.#empty.add(ns);
      return;
    }
    // A run that continues the latest one must find it still the latest, by whichever name it was read.
    if (!found || found === latest) return;
    const key = JSON.stringify([ns, id]);
    this.#byId.delete(key);
    this.#byId.add(key);
    if (this.#byId.size > READS_MAX) this.#byId.delete(this.#byId.values().next().value!);
  }

  /** Throws SESSION_BUSY if the checkpoint continues a state that is not the latest any more. */
  assertCurrent(state: ThreadState, { threadId, ns, parent, id }: NewCheckpoint): void {
    const latest = state.latest(ns);
    // Nothing was there, or the same checkpoint is put again.
    if (!latest || (latest.id === id && latest.parent === parent)) return;
    const isCurrent =
      parent === undefined
        ? !this.#empty.has(ns)
        : parent === latest.id || this.#byId.has(JSON.stringify([ns, parent]));
    if (isCurrent) return;
    const message = `The checkpoint was not saved: another run has continued the thread "${threadId}" since this run read it. What the other run saved is safe. Read the thread again, and run it from there; to branch off on purpose, name the checkpoint ("checkpoint_id").`;
    throw new HoldfastError("SESSION_BUSY", message, {
      thread: threadId,
      namespace: ns,
      parent: parent ?? null,
      latest: latest.id,
    });
  }
}
