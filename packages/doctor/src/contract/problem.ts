import type { Place } from "./record.ts";

/** Every kind of problem, with what it means for the user and what a fix does. A reader may say it more exactly. */
export const PROBLEMS = {
  "torn-record": [
    "The process died while it wrote this record; its end was never written.",
    "Keeps what can be read of it in the backup, and removes the fragment.",
  ],
  "glued-records": [
    "Two records stand on one line. The agent skips both, or refuses the session.",
    "Puts each on a line of its own.",
  ],
  "nul-run": [
    "The file holds zero bytes where a power cut lost what had been written.",
    "Removes the zero bytes, and restores each record that is readable elsewhere.",
  ],
  "raw-line-break": ["A line break inside a string cuts this record in two.", "Writes the line break as an escape."],
  "raw-control-character": [
    "A control character inside a string makes this record unreadable for the agent.",
    "Writes the character as an escape.",
  ],
  "line-separator": [
    "A U+2028 or U+2029 character inside a string: the agent takes it for the end of the line.",
    "Writes the character as an escape.",
  ],
  "split-record": ["This record is spread over several lines.", "Joins the lines."],
  "unclosed-record": ["Only the closing brackets of this record are missing.", "Adds them."],
  "invalid-utf8": [
    "These bytes are not UTF-8: part of a character was lost.",
    "Replaces the lost character with U+FFFD, unless the text is readable elsewhere.",
  ],
  "byte-order-mark": ["The file begins with a byte order mark, which no agent writes.", "Removes the mark."],
  crlf: ["The lines end with CR LF: something copied the file as text.", "Restores plain line feeds."],
  garbage: ["These bytes are no record.", "Keeps them in the backup, and removes them."],
  "header-missing": [
    "The first record, which says what session this is, is missing.",
    "Rebuilds it from the file's name and the other records.",
  ],
  "header-damaged": [
    "The first record, which says what session this is, is damaged.",
    "Rebuilds it from what is readable of it, the file's name and the other records.",
  ],
  "doubled-record": ["This record stands in the file twice.", "Keeps the first."],
  "doubled-file": ["The file holds the whole session twice.", "Keeps one copy."],
  "lost-record": [
    "This record follows one that is missing. The agent stops there: everything before it is out of reach.",
    "Restores the missing record where it is readable elsewhere; otherwise links over the gap, and marks it.",
  ],
  "call-without-result": [
    "A tool call has no result. The provider refuses the conversation, or the agent drops the call.",
    "Restores the result where it is readable elsewhere; otherwise adds one that says it was lost.",
  ],
  "result-without-call": [
    "A tool result has no call. The provider refuses the conversation, or the agent drops the result.",
    "Restores the call where it is readable elsewhere; otherwise turns the result into text.",
  ],
  "result-before-call": ["A tool result stands before its call.", "Moves it behind the call."],
  "bad-tool-input": [
    "A tool call has no complete input. The provider refuses every prompt.",
    "Restores the input where it is readable elsewhere; otherwise writes an empty one, and marks it.",
  ],
  "synthetic-tail": [
    "The last record was made by the program after an error, and blocks every resume.",
    "Removes it from the conversation.",
  ],
  "doubled-id": ["Two different records have the same id.", "Gives the second an id of its own."],
  "overlapping-sequence": [
    "Two processes wrote to this session at once: their numbers overlap.",
    "Numbers the records in the order in which they were written.",
  ],
  "poisoned-result": [
    "A tool result holds binary output that the provider refuses at every prompt.",
    "Replaces the binary part with a note.",
  ],
  "index-missing": ["The agent's index does not list this session.", "Adds it to the index."],
  "index-stale": ["The agent's index says something else than the session.", "Writes the index from the session."],
  "index-wedged": [
    "The agent's index stopped following this session; new messages do not appear.",
    "Has the agent build the index again.",
  ],
  "empty-file": ["The file is empty.", "Restores the content from where it is readable elsewhere."],
  stub: ["The session has metadata, but no conversation.", "Restores the conversation where it is readable elsewhere."],
  "deleted-file": ["The agent deleted this session.", "Brings back what holdfast watch kept of it."],
  "shrunk-file": ["The file was rewritten, and is shorter than it was.", "Restores the records that were lost."],
  "damaged-database": ["The database file is damaged.", "Builds a new database from every row that is readable."],
  "damaged-page": ["A page of the database is damaged.", "Builds a new database from every row that is readable."],
  "damaged-row": ["This row of the database cannot be read.", "Restores the row where it is readable elsewhere."],
  "missing-row": ["The database lacks this row.", "Makes the row from what refers to it."],
  "truncated-compression": [
    "The compressed file ends too early; its last records are lost.",
    "Compresses the readable records again.",
  ],
  "wrong-folder": ["The session lies in the folder of another project.", "Moves it to the folder of its own."],
  "wrong-permissions": ["The agent cannot read or write this file.", "Restores the owner's permission."],
  "unknown-version": ["The session was written in a version of the format that is not known here.", "Leaves it alone."],
  unopenable: ["The file cannot be opened.", "Leaves it alone."],
} as const satisfies Record<string, readonly [means: string, fix: string]>;

export type ProblemKind = keyof typeof PROBLEMS;

export interface Problem {
  readonly kind: ProblemKind;
  readonly place: Place;
  readonly means: string;
  readonly fix: string;
  /** What is known of this one: a name, a count, an id. Never text of the conversation. */
  readonly detail?: string;
}

export function problem(
  kind: ProblemKind,
  place: Place,
  more: { readonly detail?: string; readonly means?: string; readonly fix?: string } = {},
): Problem {
  const [means, fix] = PROBLEMS[kind];
  return { kind, place, means, fix, ...more };
}
