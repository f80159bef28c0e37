/**
 * What a store may offer for the full text of its sessions, beside their journals: a place that all who open it share, for an index that is derived. The layer above reads the records, and says what is to be found; the store
 * keeps words, and finds them. Every call is one transaction.
 */
export interface TextTables {
  marks(): Answer<Map<string, TextMark>>;
  mark(id: string): Answer<TextMark | null>;
  /**
   * Where the store can tell cheaply: the sessions that are not indexed as far as a list shows them now, those that somebody indexed without their dialect, and the ids of those that are indexed and gone. Else all are listed, and compared
   * with `marks`.
   */
  behind?(): Answer<{ readonly sessions: readonly TextBehind[]; readonly gone: readonly string[] }>;
  /** The ids of the sessions with a message of which only the beginning is indexed. */
  cut(): Answer<string[]>;
  /** Adds what follows `before`. False, and nothing is done, if somebody else has indexed the session meanwhile. */
  add(id: string, before: TextMark | null, changes: readonly TextChange[], next: TextMark): Answer<boolean>;
  /** The session is no longer found. Its rows, which can be many, are removed by `sweep`. */
  forget(id: string): Answer<void>;
  /** Removes some rows of forgotten sessions. False if there are none. */
  sweep(): Answer<boolean>;
  /** The ids of the sessions with a hit, the newest first. */
  sessionsWith(query: TextQuery): Answer<string[]>;
  /** The next hits in a session: its title, then its messages, the newest first; those before the seq `before`. Not those of steps with a hidden message. */
  hits(id: string, query: TextQuery, before: number | null, limit: number): Answer<TextFound[]>;
}

export type Answer<T> = T | Promise<T>;

/**
 * All of these, in any order, in one stretch of text; the last may be the beginning of a word. What a person takes for one word may be several (`foo_bar`): then they stand behind one another. Case and diacritics do not count.
 */
export type TextQuery = readonly string[];

/** How far a session is indexed. */
export interface TextMark {
  /** The last record that was read, and its checksum: after a power cut another one can have its seq. */
  readonly seq: number;
  readonly crc: string;
  /** What a list said of the session then: while it says the same, there is nothing to read. */
  readonly head: number;
  readonly at: string;
  readonly dialect: string | null;
  /** There are messages whose dialect was not known to who indexed them. */
  readonly blind: boolean;
  /** There are messages of which only the beginning is indexed. */
  readonly cut: boolean;
}

export interface TextBehind {
  readonly id: string;
  readonly at: string;
  readonly head: number;
}

export interface TextFound {
  readonly seq: number;
  /** Empty for the title. */
  readonly message: string;
  /** The stretch, with marks around each hit. */
  readonly marked: string;
}

/** What a record means for a search. */
export type TextChange =
  | { readonly kind: "title"; readonly title: string }
  | {
      readonly kind: "message";
      readonly id: string;
      readonly seq: number;
      /** Hiding works on whole steps (C34). */
      readonly step: string;
      /** Empty if it is not to be found. */
      readonly text: string;
      readonly hidden: boolean;
      /** What an epoch brings along has its metadata as they are by then. */
      readonly carried: boolean;
    }
  | { readonly kind: "hiding"; readonly id: string; readonly hidden: boolean };
