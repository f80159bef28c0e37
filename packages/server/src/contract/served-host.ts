import type { Account, Reading, Store } from "holdfast";
import type { ChatState, Host, InterruptionShown } from "./host.ts";
import type { CallItem, Item } from "./item.ts";

/**
 * What the server needs of the process that runs the agents: the host, the sessions that it does not have open, and
 * how people read a session. The server decides nothing about turns.
 */
export interface ServedHost extends Host {
  readonly sessions: Store;
  /** A session as people read it. Unchanged items stay the same objects. */
  items(reading: Reading<unknown>): readonly Item[];
  /** What is true of a session that this process does not have open. */
  account(reading: Reading<unknown>): Promise<Account>;
  /** The prompts that wait, the interruption and the damage, as a chat shows them. */
  queue(reading: Reading<unknown>): ChatState["queue"];
  interruption(reading: Reading<unknown>, account: Account): InterruptionShown | null;
  damageWords(recovery: Reading<unknown>["recovery"]): readonly string[];
  /** Who speaks in a stored message, and what it says, in any dialect. */
  said(message: unknown, dialect: string): SaidShown;
  /** What a call changes in a file; null if it changes none. */
  changeOf(call: CallItem): FileChange | null;
  /** Replaces the credentials in the texts of any value, as an export can. The same value if there are none. */
  redact<T>(value: T): T;
  /** Throws CommandError for an unknown format. */
  exportAs(id: string, format: string, redact: boolean): AsyncIterable<string>;
  /** Kept with what this user has allowed, outside the journal: a journal from elsewhere must not start turns. */
  finishesAfterRestart(id: string): boolean;
  setFinishesAfterRestart(id: string, finishes: boolean): void;
  /**
   * Closes an open chat. The next start continues its running turn: what is under way has `withinMs` to end. `hurry`
   * stops the turn instead.
   */
  handOver(id: string, withinMs: number, hurry?: AbortSignal): Promise<void>;
  /** The turn that this host has handed over, or was about to when it died; null if none. Kept in the same place. */
  handedOver(id: string): number | null;
}

export interface FileChange {
  readonly path: string;
  readonly rows: readonly DiffLine[];
}

export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "gap";
  readonly text: string;
}

/** A message, in any dialect. */
export interface SaidShown {
  readonly role: string;
  readonly text: string;
  /** Without those that the provider runs. */
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  /** The results that it has. */
  readonly answers: readonly { readonly call: string; readonly failed: boolean }[];
}
