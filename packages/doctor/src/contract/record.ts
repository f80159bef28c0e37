/** What a reader makes of the bytes of a session: records, and the units of conversation in them. */

/** Where something is. A record of a database has no line and no offset: `row` names it. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number | null;
  /** In bytes from the beginning of the file; of a compressed file, of what it holds. */
  readonly offset: number | null;
  readonly row?: { readonly table: string; readonly id: string | number };
}

/**
 * How much of a record is there. `intact`: as the agent wrote it. `recovered`: all of it, although its text is damaged.
 * `partial`: some of it is lost. `unreadable`: bytes in which no record was found.
 */
export type RecordState = "intact" | "recovered" | "partial" | "unreadable";

/** What people and models said and did. Each unit stands in the record that holds it. */
export type Unit =
  | { readonly type: "user"; readonly content: unknown }
  | { readonly type: "assistant"; readonly content: unknown }
  /** `text` is empty where the provider sealed it. */
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly type: "result"; readonly call: string; readonly content: unknown; readonly isError: boolean }
  /** What is before it is no longer sent to the model, except for the retained records (their ids). */
  | { readonly type: "compaction"; readonly summary: string | null; readonly retained?: readonly string[] }
  /** A conversation that a call started. `thread`: its name in the records of this session, or the id of another. */
  | { readonly type: "subagent"; readonly thread: string; readonly call: string | null }
  /** Instructions that the program gave the model. */
  | { readonly type: "system"; readonly content: unknown }
  /** What the session is called. */
  | { readonly type: "title"; readonly text: string };

export interface SessionRecord {
  readonly place: Place;
  /**
   * The bytes of the record, without what ends its line. They stand in the reader's buffer: copy what you keep. Of an
   * unreadable stretch that is longer than any record may be, only the beginning; `length` counts.
   */
  readonly bytes: Uint8Array;
  readonly length: number;
  /** The agent's own word for this kind of record; `unknown` if the reader does not understand it. */
  readonly kind: string;
  readonly state: RecordState;
  /** Undefined if the record is unreadable. */
  readonly value: unknown;
  /** The conversation it belongs to: `main`, or that of a sub-agent. */
  readonly thread: string;
  /** Its id, where a second record with this id would be a mistake. */
  readonly id: string | null;
  /** The id of the record before it, in formats whose records name it; null at a beginning. */
  readonly parent: string | null;
  /** Its number, in formats that count. */
  readonly sequence: number | null;
  /** When it was written, as milliseconds since 1970, if it says so. */
  readonly at: number | null;
  readonly units: readonly Unit[];
  /** Units of other records that this one says again. They count only where those are lost. */
  readonly repeats?: readonly Unit[];
  /** What happens to everything that was said in this thread before, in formats that record it. */
  readonly view?: () => ConversationView;
  /** The line as it should be, if the text is damaged and the record can be read at least in part. */
  readonly repaired?: Uint8Array;
}

/** The model is shown this instead of all that was before; or all that was before the record with an id. */
export type ConversationView =
  | {
      readonly type: "instead";
      readonly said: readonly { readonly id: string | null; readonly units: readonly Unit[] }[];
    }
  | { readonly type: "back"; readonly to: string };
