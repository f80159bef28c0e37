import { CommandError, EXIT } from "./exit.ts";
import { withoutPasswords } from "./shown-address.ts";
import { plain } from "./terminal/plain.ts";

/** An error, as the user is to see it. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  /** What happened, whether data is safe, and what to do next. */
  readonly message: string;
  /** What this command can do about it. */
  readonly hints: readonly string[];
}

interface LibraryError extends Error {
  readonly code: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

const STORE_CODES = new Set([
  "DIALECT_UNKNOWN",
  "FILE_REPLACED",
  "FORMAT_NEWER",
  "JOURNAL_UNREADABLE",
  "LEASE_LOST",
  "NOT_SUPPORTED",
  "PATH_UNSAFE",
  "STORE_FORBIDDEN",
  "STORE_FULL",
  "STORE_IO",
  "SYNC_FAILED",
]);
const USAGE_CODES = new Set(["CURSOR_STALE", "MESSAGE_UNKNOWN", "QUERY_INVALID", "STORE_URL_INVALID"]);

/** Most errors of the command say all by themselves; these are thrown where it is not known which command runs. */
const OWN_HINTS: Readonly<Record<string, readonly string[]>> = {
  NOTHING_TO_RESUME: ['"holdfast ls --status interrupted" lists what did not end; "--resume <id>" names it.'],
};

/** What became of the command, in words. Pure. No password gets into them, whoever made the error. */
export function failureOf(error: unknown): Failure {
  const failure = worded(error);
  return { ...failure, message: withoutPasswords(failure.message), hints: failure.hints.map(plain) };
}

function worded(error: unknown): Failure {
  if (error instanceof CommandError)
    return {
      exitCode: error.exitCode,
      code: error.code,
      message: plain(error.message),
      hints: [...(OWN_HINTS[error.code] ?? [])],
    };
  if (isLibraryError(error))
    return {
      exitCode: exitCodeOf(error.code),
      code: error.code,
      message: plain(error.message),
      hints: hintsFor(error),
    };
  const message = error instanceof Error ? error.message : String(error);
  const code = errnoOf(error);
  if (code !== null)
    return { exitCode: EXIT.failed, code, message: plain(`The system said no: ${message}.`), hints: [] };
  return {
    exitCode: EXIT.failed,
    code: "UNEXPECTED",
    message: plain(`Something happened that should not: ${message}. What was recorded before is safe.`),
    hints: ["This is a fault of holdfast: please report it. HOLDFAST_DEBUG=1 shows where it happened."],
  };
}

export function exitCodeOf(code: string): number {
  if (code === "SESSION_NOT_FOUND" || code === "ID_INVALID") return EXIT.notFound;
  if (code === "SESSION_BUSY") return EXIT.busy;
  if (STORE_CODES.has(code)) return EXIT.store;
  if (USAGE_CODES.has(code)) return EXIT.usage;
  return EXIT.failed;
}

/** Known by its name, so that nothing of the library is loaded to say that it failed. */
function isLibraryError(error: unknown): error is LibraryError {
  return error instanceof Error && error.name === "HoldfastError" && "code" in error && "facts" in error;
}

function errnoOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("syscall" in error) || !("code" in error)) return null;
  return String(error.code);
}

function hintsFor({ code, facts }: LibraryError): string[] {
  const id = typeof facts["session"] === "string" ? facts["session"] : "<id>";
  switch (code) {
    case "SESSION_BUSY":
      return [
        `Watch it with "holdfast tail -f ${id}", go on in a copy with "holdfast fork ${id}", or end that process: the session is free at that instant.`,
      ];
    case "SESSION_NOT_FOUND":
    case "ID_INVALID":
      return ['"holdfast ls --all" lists what is there.'];
    case "MESSAGE_UNKNOWN":
      return [`"holdfast show <id> --json | jq '.items[] | {id, kind, text}'" lists the messages with their ids.`];
    case "STORE_FULL":
      return [
        '"holdfast gc --older-than 0s" empties the trash, "holdfast pack --all" compresses old parts of sessions.',
      ];
    case "STORE_FORBIDDEN":
      if (facts["errno"] === "EROFS")
        return [
          'The file system is read-only: "ls", "search", "show", "tail", "export" and "verify" work there. To go on with its sessions, copy them: holdfast copy <from> <to> --all',
        ];
      return [
        'Is it the store of another user? "holdfast config" shows where it is looked for; --store or HOLDFAST_STORE names another.',
      ];
    case "PATH_UNSAFE":
      // Most likely the file is meant, and its kind was left out.
      if (facts["errno"] !== "ENOTDIR" || !/\.(?:db|sqlite\d?)$/i.test(String(facts["path"]))) return [];
      return [`A store that is one SQLite file is named with its kind: --store sqlite:${plain(String(facts["path"]))}`];
    case "FORMAT_NEWER":
      return ["Install the newer holdfast: npm install -g @holdfast/cli@latest"];
    case "DIALECT_UNKNOWN":
      if (facts["dialect"] === "")
        return [
          'What says so is damaged or gone: "holdfast verify <id>" says what is wrong, and where. What is left can be read: "holdfast tail <id>", "holdfast export <id> --format jsonl".',
        ];
      return [
        'Another program wrote it, in messages of its own. Its records can be read: "holdfast tail <id>", "holdfast export <id> --format jsonl".',
      ];
    case "JOURNAL_UNREADABLE":
      return [`"holdfast verify ${id}" says what is wrong, and where.`];
    default:
      return [];
  }
}
