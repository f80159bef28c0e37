import { CommandError, EXIT } from "./exit.ts";
import { withShortIds } from "./short-id.ts";
import type { Paint } from "./terminal/colour.ts";
import { plain } from "./terminal/plain.ts";
import { wrapWords } from "./terminal/wrap-words.ts";
import { typedCommand } from "./typed-command.ts";
import { withoutPasswords } from "./without-passwords.ts";

/** An error as shown to the user. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  /** What happened, whether data is safe, and what to do next. */
  readonly message: string;
  /** What the user can do about it with this command. */
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
  "SERVER_UNSUPPORTED",
  "STORE_FORBIDDEN",
  "STORE_FULL",
  "STORE_IO",
  "SYNC_FAILED",
]);
const USAGE_CODES = new Set([
  "CURSOR_STALE",
  "MESSAGE_UNKNOWN",
  "QUERY_INVALID",
  "REQUEST_INVALID",
  "STORE_URL_INVALID",
  "TOKEN_MISSING",
  "TOKEN_READ_ONLY",
]);

/** Most CommandErrors need no hint; these are thrown where the running command is unknown. */
function ownHints(code: string): string[] {
  if (code !== "NOTHING_TO_RESUME") return [];
  return [`"${typedCommand("ls --status interrupted")}" lists interrupted sessions; choose one with "--resume <id>".`];
}

/** Converts an error for the user, and removes passwords wherever the error came from. */
export function failureOf(error: unknown): Failure {
  const failure = describe(error);
  const message = withShortIds(withoutPasswords(failure.message));
  return { ...failure, message, hints: failure.hints.map((hint) => withShortIds(plain(hint))) };
}

/** The lines that a terminal of this width shows; undefined: not a terminal. */
export function failureLines(
  { code, message, hints }: Failure,
  columns: number | undefined,
  paint: Paint = (_style, text) => text,
): string[] {
  const [first, ...rest] = message.split("\n");
  const head = wrapWords(`holdfast: ${first} [${code}]`, columns, 2);
  const painted = head.map((line) => line.replace(`[${code}]`, () => paint("faint", `[${code}]`)));
  return [
    ...painted.map((line, i) => (i === 0 ? line.replace("holdfast:", () => paint("bad", "holdfast:")) : line)),
    ...rest.flatMap((line) => wrapWords(line, columns, 2)),
    ...hints.flatMap((hint) => wrapWords(`  ${hint}`, columns)),
  ];
}

function describe(error: unknown): Failure {
  if (error instanceof CommandError)
    return {
      exitCode: error.exitCode,
      code: error.code,
      message: plain(error.message),
      hints: ownHints(error.code),
    };
  if (isLibraryError(error))
    return {
      exitCode: exitCodeOf(error.code),
      code: error.code,
      message: plain(error.message),
      hints: hintsFor(error),
    };
  if (isServerError(error))
    return { exitCode: exitCodeOf(error.code), code: error.code, message: plain(error.message), hints: [] };
  const message = error instanceof Error ? error.message : String(error);
  const code = errnoOf(error);
  if (code !== null) return { exitCode: EXIT.failed, code, message: plain(`System error: ${message}.`), hints: [] };
  return {
    exitCode: EXIT.failed,
    code: "UNEXPECTED",
    message: plain(`Unexpected error: ${message}. Everything recorded so far is safe.`),
    hints: ["This is a bug in holdfast: please report it. Set HOLDFAST_DEBUG=1 to see where it happened."],
  };
}

export function exitCodeOf(code: string): number {
  if (code === "SESSION_NOT_FOUND" || code === "ID_INVALID") return EXIT.notFound;
  if (/^SERVER_(?:UNREACHABLE|UNKNOWN|UNPROVEN)$/.test(code)) return EXIT.notFound;
  if (code === "SESSION_BUSY" || code === "STORE_BUSY") return EXIT.busy;
  if (STORE_CODES.has(code)) return EXIT.store;
  if (USAGE_CODES.has(code)) return EXIT.usage;
  return EXIT.failed;
}

/** Recognized by name, so that reporting a failure does not load the library. */
function isLibraryError(error: unknown): error is LibraryError {
  return error instanceof Error && error.name === "HoldfastError" && "code" in error && "facts" in error;
}

/** What a server answered, or that there is none. Recognized by name, like the library's. */
function isServerError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && error.name === "ServerError" && "code" in error;
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
        `Watch it with "${typedCommand(`tail -f ${id}`)}", continue in a copy with "${typedCommand(`fork ${id}`)}", or end that process to free the session at once. "${typedCommand("resume")}" lists the other sessions.`,
      ];
    case "STORE_BUSY":
      return [
        'End that program first. If it is "holdfast serve", watch its sessions with "holdfast attach". A folder store can be looked into while an agent runs: holdfast copy <from> <to> --all',
      ];
    case "STORE_URL_INVALID":
      if (typeof facts["scheme"] !== "string") return [];
      return [
        `If a package opens "${facts["scheme"]}:" addresses, name it in the configuration file: "stores": { "${facts["scheme"]}": "<package>" }. "holdfast config" shows where the file is.`,
      ];
    case "SESSION_NOT_FOUND":
    case "ID_INVALID":
      return [`"${typedCommand("ls --all")}" lists the sessions.`];
    case "MESSAGE_UNKNOWN":
      return [
        `"${typedCommand("show <id> --json")} | jq '.items[] | {id, kind, text}'" lists the messages with their ids.`,
      ];
    case "STORE_FULL":
      // A limit on the size of one file: deleting others does not help.
      if (facts["errno"] === "EFBIG") return [];
      return [
        `"${typedCommand("gc --older-than 0s")}" empties the trash; "${typedCommand("pack --all")}" compresses the old parts of sessions.`,
      ];
    case "STORE_FORBIDDEN":
      if (facts["errno"] === "EROFS")
        return [
          'You can still read: "ls", "search", "show", "tail", "export" and "verify" work. To continue its sessions, copy them: holdfast copy <from> <to> --all',
        ];
      return [
        'Does the store belong to another user? "holdfast config" shows the address in use; set another one with --store or HOLDFAST_STORE.',
      ];
    case "PATH_UNSAFE":
      // Most likely the user meant this file and left out "sqlite:".
      if (facts["errno"] !== "ENOTDIR" || !/\.(?:db|sqlite\d?)$/i.test(String(facts["path"]))) return [];
      return [`To use an SQLite file, put "sqlite:" before its path: --store sqlite:${plain(String(facts["path"]))}`];
    case "FORMAT_NEWER":
      return ["Install the newer holdfast: npm install -g @holdfast/cli@latest"];
    case "DIALECT_UNKNOWN": {
      const readable = `"${typedCommand(`tail ${id}`)}", "${typedCommand(`export ${id} --format jsonl`)}"`;
      if (facts["dialect"] === "")
        return [
          `The record that names the dialect is damaged or missing: "${typedCommand(`verify ${id}`)}" shows what is wrong, and where. You can still read the rest: ${readable}.`,
        ];
      return [`Another program wrote it, in its own message format. You can still read its records: ${readable}.`];
    }
    case "JOURNAL_UNREADABLE":
      return [`"${typedCommand(`verify ${id}`)}" shows what is wrong, and where.`];
    default:
      return [];
  }
}
