import type { Holder, JournalStore } from "../../journal/contract.ts";
import { MemorySession } from "./session.ts";

export interface MemoryLease {
  readonly holder: Holder;
  /** Who the lease dies with. */
  readonly owner: JournalStore;
  /** Tells the holder that it holds nothing any more. */
  readonly lost: () => void;
}

/**
 * The place that memory stores keep their sessions in. Several stores may be open on one memory, as several processes may be on one
 * folder: that is how tests close a store and open it again.
 */
export class Memory {
  readonly sessions: Map<string, MemorySession> = new Map();
  readonly leases: Map<string, MemoryLease> = new Map();
  /** Names of deleted sessions, and when each was deleted. */
  readonly trash: Map<string, number> = new Map();

  add(id: string): MemorySession {
    const session = new MemorySession(id);
    this.sessions.set(id, session);
    return session;
  }

  /** As if the process that has `store` open had been killed: its leases are free, and nothing was closed. */
  crash(store: JournalStore): void {
    for (const [id, lease] of this.leases) {
      if (lease.owner !== store) continue;
      this.leases.delete(id);
      lease.lost();
    }
  }
}
