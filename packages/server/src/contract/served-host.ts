import type { Reading, Store } from "holdfast";
import type { Host } from "./host.ts";
import type { CallItem, Item } from "./item.ts";

/**
 * What the server needs of the process that runs the agents: the host, the sessions that it does not have open, and
 * how people read a session. The server decides nothing about turns.
 */
export interface ServedHost extends Host {
  readonly sessions: Store;
  /** A session as people read it. Unchanged items stay the same objects. */
  items(reading: Reading<unknown>): readonly Item[];
  /** What a call changes in a file; null if it changes none. */
  changeOf(call: CallItem): FileChange | null;
  /** Throws CommandError for an unknown format. */
  exportAs(id: string, format: string, redact: boolean): AsyncIterable<string>;
  /** Kept with what this user has allowed, outside the journal: a journal from elsewhere must not start turns. */
  finishesAfterRestart(id: string): boolean;
  setFinishesAfterRestart(id: string, finishes: boolean): void;
  /** The folder that this user works in, in this session; null if only the journal names one. */
  trustedFolder(id: string): string | null;
}

export interface FileChange {
  readonly path: string;
  readonly rows: readonly DiffLine[];
}

export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "gap";
  readonly text: string;
}
