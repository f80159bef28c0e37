import type { Holder } from "../../journal/contract.ts";
import { MemorySession } from "./session.ts";

export interface MemoryLease {
  readonly holder: Holder;
  /** Tells the holder that it no longer holds anything. */
  readonly lost: () => void;
}

export interface TrashedSession {
  readonly session: MemorySession;
  readonly deletedMs: number;
}

/**
 * Where memory stores keep their sessions. Several stores may be open on one memory, like several processes on one
 * folder: that is how tests close a store and reopen it.
 */
export class Memory {
  readonly sessions: Map<string, MemorySession> = new Map();
  readonly leases: Map<string, MemoryLease> = new Map();
  /** Deleted sessions, in the order of their deletion. */
  readonly trash: Set<TrashedSession> = new Set();
  /** The newest stamp of any session. */
  newest: string | undefined;

  /** A session was written to. */
  note(stamp: string): void {
    if (this.newest === undefined || stamp > this.newest) this.newest = stamp;
  }

  add(id: string): MemorySession {
    const session = new MemorySession(id);
    this.sessions.set(id, session);
    return session;
  }

  /** As if the process writing to the session had been killed: its lease is free, and nothing was closed. */
  crash(id: string): void {
    const lease = this.leases.get(id);
    this.leases.delete(id);
    lease?.lost();
  }
}
