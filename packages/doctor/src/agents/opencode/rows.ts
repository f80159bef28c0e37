import type { Problem } from "../../contract/problem.ts";
import type { Place } from "../../contract/record.ts";
import type { Fields } from "../../contract/shapes.ts";

/** One object of a session where it is kept: a row, or a file of older versions. */
export interface Row {
  readonly id: string;
  readonly place: Place;
  /** All of it, as it is kept. */
  readonly bytes: Uint8Array;
  /** What should be an object of JSON; null if it cannot be read. */
  readonly text: string | null;
  /** Whether characters of it were lost. */
  readonly isUtf8: boolean;
  readonly at: number | null;
}

/** Something that has to be there, and whether it is. */
export interface Listed {
  readonly id: string;
  readonly row: Row | null;
  /** Where it would be. */
  readonly place: Place;
}

/** A session in its own place. What is listed comes in the order of the conversation. */
export interface Rows {
  /** What is wrong with the place itself. */
  problems(): Iterable<Problem>;
  session(id: string): Listed;
  /** The sessions of its sub-agents. */
  children(id: string): readonly string[];
  /** Its messages, also those that only something else names. */
  messages(session: string): Iterable<Listed>;
  parts(session: string, message: string): Iterable<Listed>;
  /** The same object where it is said again: what it was, the latest first. */
  twins(session: string, id: string): Iterable<Fields>;
}
