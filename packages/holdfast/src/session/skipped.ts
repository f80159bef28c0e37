import process from "node:process";
import { type HoldfastError, isHoldfastError } from "../errors.ts";
import { oneLine } from "../text/one-line.ts";

/** Whether the error concerns the one session being opened, not the store. */
export function isOfOneSession(error: unknown): error is HoldfastError {
  return isHoldfastError(
    error,
    "DIALECT_UNKNOWN",
    "FORMAT_NEWER",
    "JOURNAL_UNREADABLE",
    "PATH_UNSAFE",
    "STORE_FORBIDDEN",
    "STORE_IO",
  );
}

const WARNING_CHARS_MAX = 1000;

export function warnOf(id: string, { code, message }: HoldfastError): void {
  // Node prints it unescaped, and the message may quote an untrusted journal.
  const words = oneLine(message, WARNING_CHARS_MAX);
  process.emitWarning(`Session ${id} was skipped, and an older one opened: ${words}`, { code });
}
