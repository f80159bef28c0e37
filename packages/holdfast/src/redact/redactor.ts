import { credentials } from "./find-credentials.ts";

/** Takes a text and returns what may be written of it. Total: it does not throw. */
export type Redactor = (text: string) => string;

/** Replaces a text on which the application's own function failed. */
export const REDACTOR_FAILED = "[redacted: the redactor failed]";

/**
 * The function for the option `redact`; null if nothing is redacted. If an application's function throws, or returns
 * something other than a text (a promise), that text is lost: what the function would have removed is unknown, and what
 * is written cannot be taken back. The append itself continues, because a turn that cannot be recorded is worse than
 * one with a gap.
 */
export function redactorOf(option: "credentials" | ((text: string) => string) | undefined): Redactor | null {
  if (option === undefined) return null;
  if (option === "credentials") return credentials;
  return (text) => {
    try {
      const redacted: unknown = option(text);
      return typeof redacted === "string" ? redacted : REDACTOR_FAILED;
    } catch {
      return REDACTOR_FAILED;
    }
  };
}
