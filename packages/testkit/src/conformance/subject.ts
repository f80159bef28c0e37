import type { Capabilities, Durability, JournalStore, NewRecord, Summariser } from "holdfast/store";

/** A store to test: how to create an empty place for it, and what it supports. */
export interface Subject {
  readonly name: string;
  /**
   * What the store must state about itself, and whether its writers can be killed here. This alone decides which cases
   * are skipped.
   */
  readonly capabilities: SubjectCapabilities;
  /** A new, empty place; each case gets its own. */
  fresh(): Promise<Place>;
}

export interface SubjectCapabilities extends Capabilities {
  /** `Place.writeAndDie` exists. */
  readonly dies: boolean;
}

/** Where a store keeps its sessions: a folder, a file, a database. */
export interface Place {
  /** Opens the store. A second call in the same process opens the same place again, even while it is open. */
  open(options?: SubjectOptions): Promise<JournalStore>;
  /**
   * Starts a writer, in a separate process if the store has any. If it does not support several, nobody has it open. It
   * opens the session with `noteSummariser`,
   * appends each of `steps`, waits for the acknowledgements, and is killed without closing anything. The place keeps
   * what was written, and the lease is free.
   */
  writeAndDie?(id: string, steps: readonly Step[]): Promise<void>;
  /** Called after every store opened here has been closed. */
  remove(): Promise<void>;
}

/** The options that cases pass when they open a store: every store has them. */
export interface SubjectOptions {
  readonly durability?: Durability;
  readonly summariser?: Summariser;
  readonly clock?: () => number;
  readonly app?: string;
}

/** One append. */
export interface Step {
  readonly records: readonly NewRecord[];
  readonly key?: string;
}
