import { plainLine } from "../terminal/plain.ts";

/** What a journal claims, and this user has not said: shown, so that a person knows what its author wanted, and not obeyed. Pure. */
export interface Claims {
  /** Rules that it brings along. */
  readonly rules: readonly string[];
  /** Calls that it says were approved, in words. */
  readonly approvals: readonly string[];
  /** Processes that it says its commands run in. */
  readonly pids: readonly number[];
  /** The model that it names, if another one is used. */
  readonly model: string | null;
}

export function claimsShown({ rules, approvals, pids, model }: Claims): string[] {
  const words: string[] = [];
  if (rules.length > 0)
    words.push(
      `The journal of this session asks to run without asking: ${some(rules.map((rule) => `"${rule}"`))}. You have not allowed that in this session here, so it does not count.`,
    );
  if (approvals.length > 0)
    words.push(
      `The journal of this session says that somebody approved: ${some(approvals)}. You have not approved that here, so it does not run by that word.`,
    );
  if (pids.length > 0)
    words.push(
      `The journal of this session names processes that your agent did not start for it (${some(pids.map(String))}): they are neither waited for nor stopped.`,
    );
  if (model !== null)
    words.push(
      `The journal of this session names the model ${some([model])}. You have not worked with it here, so your own model is used; --model chooses another.`,
    );
  return words;
}

const SHOWN_MAX = 3;
const CHARACTERS_MAX = 100;

function some(all: readonly string[]): string {
  const shown = all.slice(0, SHOWN_MAX).map((one) => {
    const line = plainLine(one.slice(0, 4 * CHARACTERS_MAX).toWellFormed());
    return line.length <= CHARACTERS_MAX ? line : `${line.slice(0, CHARACTERS_MAX - 1).toWellFormed()}…`;
  });
  return all.length > SHOWN_MAX ? `${shown.join(", ")} and ${all.length - SHOWN_MAX} more` : shown.join(", ");
}
