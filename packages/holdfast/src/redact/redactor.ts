import { credentials } from "./find-credentials.ts";

/** Takes a text, gives what may be written of it. Total: it does not throw. */
export type Redactor = (text: string) => string;

/** What is written in the place of a text on which the application's own function failed. */
export const REDACTOR_FAILED = "[redacted: the redactor failed]";

/**
 * The function of the option `redact`; null if nothing is to be redacted. An application's function that throws, or answers something else than a text (a promise), loses that text: what it
 * would have taken out is not known, and what is written cannot be called back. The append itself goes on, since a turn that cannot be recorded is worse than one with a hole in it.
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
