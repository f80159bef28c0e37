import { openStore, type Session, type Turn } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import type { Journal } from "holdfast/store";
import { type Ending, endsNow, type Guarded, onClosed } from "../../src/session/guarded.ts";

/** What the agents of these tests have of a session: all that they know of one is in this file. */
export interface Target {
  readonly session: Session<unknown>;
  /** Resolves when it is durable. */
  append(n: number): Promise<void>;
  close(): Promise<void>;
}

/** How a target takes an ending: as a store with a synchronous way does, as one without does, or not at all. */
export type Manner = "sync" | "async" | "fails" | "rejects";

/** A real session, in the middle of a turn. */
class SessionTarget implements Target {
  readonly session: Session<unknown>;
  readonly #turn: Turn<unknown>;

  constructor(session: Session<unknown>, turn: Turn<unknown>) {
    this.session = session;
    this.#turn = turn;
  }

  async append(n: number): Promise<void> {
    await this.#turn.append({ role: "user", content: String(n) });
  }

  close(): Promise<void> {
    return this.session.close();
  }
}

/**
 * For what a folder store does not do (no synchronous way, failing): as much of a session as the guard sees, over a
 * real journal.
 */
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
    return this.#later(ending);
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

/** New sessions in one store, one for each id: a real one has it as a label. */
export async function openTargets(folder: string, ids: readonly string[], manner: Manner): Promise<Target[]> {
  const made: Target[] = [];
  if (manner === "sync") {
    const store = await openStore(folder);
    for (const id of ids) {
      const session = await store.create({ dialect: "openai-chat", labels: { id } });
      made.push(new SessionTarget(session, await session.startTurn({ role: "user", content: "work" })));
    }
    return made;
  }
  const store = await openFolderStore(folder);
  for (const id of ids)
    made.push(new JournalTarget(await store.create(id, [{ kind: "turn.started", turn: 1 }]), manner));
  return made;
}
