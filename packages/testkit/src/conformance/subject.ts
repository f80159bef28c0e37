import type { Capabilities, Durability, JournalStore, NewRecord, Summariser } from "holdfast";

/** A store to be tested: how to make an empty place for it, and what it can do. */
export interface Subject {
  readonly name: string;
  /** What the store must state of itself, and whether its writers can be killed here. A case is left out only on the strength of this. */
  readonly capabilities: SubjectCapabilities;
  /** A new and empty place; each case gets one of its own. */
  fresh(): Promise<Place>;
}

export interface SubjectCapabilities extends Capabilities {
  /** `Place.writeAndDie` is there. */
  readonly dies: boolean;
}

/** Where a store keeps its sessions: a folder, a file, a database. */
export interface Place {
  /** Opens the store. Called again, also while one is open, it opens the same place once more. */
  open(options?: SubjectOptions): Promise<JournalStore>;
  /**
   * A writer of its own, in a process of its own where the store lives in several, opens the session with `noteSummariser`, appends each
   * of `steps`, waits for its acknowledgement, and is killed without closing anything. The place holds what it holds then, and its lease
   * is free.
   */
  writeAndDie?(id: string, steps: readonly Step[]): Promise<void>;
  /** Every store that was opened here has been closed. */
  remove(): Promise<void>;
}

/** What the cases ask of a store when they open it: every store has these options. */
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
