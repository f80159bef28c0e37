import { type Journal, openFolderStore } from "holdfast";
import { type Ending, endsNow, type Guarded, onClosed } from "../../src/session/guarded.ts";
import type { Session } from "../../src/session/surface.ts";

/** What the agents of these tests have of a session: all that they know of one is in this file. */
export interface Target {
  readonly session: Session<unknown>;
  /** Resolves when it is durable. */
  append(n: number): Promise<void>;
  close(): Promise<void>;
}

/** How a target takes an ending: as a store with a synchronous way does, as one without does, or not at all. */
export type Manner = "sync" | "async" | "fails" | "rejects";

/** As much of a session as the guard and these tests see, over a real journal. */
class JournalTarget implements Guarded, Target {
  readonly #journal: Journal;
  readonly #manner: Manner;
  readonly #listeners = new Set<() => void>();

  constructor(journal: Journal, manner: Manner) {
    this.#journal = journal;
    this.#manner = manner;
  }

  get session(): Session<unknown> {
    return this as unknown as Session<unknown>;
  }

  async append(n: number): Promise<void> {
    await this.#journal.append({ kind: "message", n });
  }

  [endsNow](ending: Ending): void | Promise<void> {
    if (this.#manner === "fails") throw new Error("this target fails");
    if (this.#manner === "rejects") return Promise.reject(new Error("this target fails, later"));
    if (this.#manner === "async") return this.#later(ending);
    this.#journal.appendSync({ kind: "signal", ...ending });
    this.#journal.flushSync();
  }

  async #later(ending: Ending): Promise<void> {
    await this.#journal.append({ kind: "signal", ...ending });
    await this.#journal.flush();
  }

  [onClosed](listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    await this.#journal.close();
    for (const listener of this.#listeners) listener();
  }
}

/** New sessions in one store, one for each id. */
export async function openTargets(folder: string, ids: readonly string[], manner: Manner): Promise<Target[]> {
  const store = await openFolderStore(folder);
  const made: Target[] = [];
  for (const id of ids)
    made.push(new JournalTarget(await store.create(id, [{ kind: "turn.started", turn: 1 }]), manner));
  return made;
}
