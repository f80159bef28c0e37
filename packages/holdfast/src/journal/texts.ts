/**
 * An optional service of a store for the full text of its sessions, next to their journals: a derived index shared by
 * all clients of the store. The layer above reads the records and decides what can be found; the store keeps words and
 * finds them. Every call is one transaction.
 */
export interface TextTables {
  marks(): Answer<Map<string, TextMark>>;
  mark(id: string): Answer<TextMark | null>;
  /**
   * If the store can tell cheaply, page by page: the sessions whose index is behind what a list shows, those that were
   * indexed without their dialect, and the ids of indexed sessions that no longer exist. Otherwise, all sessions are
   * listed and compared with `marks`. `background`: a few at a time, and none that another process works on.
   */
  behind?(options?: { readonly background?: boolean }): AsyncIterable<TextBacklog>;
  /** The ids of the sessions that have a message of which only the start is indexed. */
  cut(): Answer<string[]>;
  /**
   * Adds the changes after `before`. Returns false without effect if another client has indexed the session in the
   * meantime.
   */
  add(id: string, before: TextMark | null, changes: readonly TextChange[], next: TextMark): Answer<boolean>;
  /** Hides the session from searches. `sweep` removes its rows, of which there can be many. */
  forget(id: string): Answer<void>;
  /** Removes some rows of forgotten sessions. Returns false if there are none. */
  sweep(): Answer<boolean>;
  /** The ids of the sessions with a hit, newest first. */
  sessionsWith(query: TextQuery): Answer<string[]>;
  /**
   * The next hits in a session: its title, then its messages, newest first; only those before the seq `before`.
   * Excludes steps with a hidden message.
   */
  hits(id: string, query: TextQuery, before: number | null, limit: number): Answer<TextFound[]>;
}

export type Answer<T> = T | Promise<T>;

/**
 * All of these words, in any order, in one stretch of text; the last may be the start of a word. What a person sees as
 * one word may be several (`foo_bar`); those must be adjacent. Case and diacritics are ignored.
 */
export type TextQuery = readonly string[];

/** How far a session has been indexed. */
export interface TextMark {
  /** The last record read, and its checksum: after a power cut, another record can have its seq. */
  readonly seq: number;
  readonly crc: string;
  /** What a list showed for the session at that time: while it shows the same, there is nothing to read. */
  readonly head: number;
  readonly at: string;
  readonly dialect: string | null;
  /** Some messages were indexed without knowing their dialect. */
  readonly blind: boolean;
  /** Only the start of some messages is indexed. */
  readonly cut: boolean;
}

/** A page of texts to index. */
export interface TextBacklog {
  readonly sessions: readonly TextBehind[];
  readonly gone: readonly string[];
  /** If many sessions are to be compared or added: how many are done, without this page. */
  readonly progress: TextProgress | null;
  /** Call it when the page is indexed: it is not handed out again, except for sessions that could not be read. */
  finish(unread: readonly string[]): Promise<void>;
}

/** How far the indexing has come, in sessions. */
export interface TextProgress {
  readonly done: number;
  readonly total: number;
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
  /** The stretch, with markers around each hit. */
  readonly marked: string;
}

/** What a record means for searching. */
export type TextChange =
  | { readonly kind: "title"; readonly title: string }
  | {
      readonly kind: "message";
      readonly id: string;
      readonly seq: number;
      /** Hiding applies to whole steps (C34). */
      readonly step: string;
      /** Empty if it must not be found. */
      readonly text: string;
      readonly hidden: boolean;
      /** For messages that an epoch retains, the metadata is current as of that epoch. */
      readonly carried: boolean;
    }
  | { readonly kind: "hiding"; readonly id: string; readonly hidden: boolean };
