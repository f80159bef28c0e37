import { plainLine } from "../terminal/plain.ts";

/**
 * What a journal claims without this user's consent. It is shown, so that a person knows what the author wanted, but
 * not obeyed. Pure.
 */
export interface Claims {
  /** Rules it contains. */
  readonly rules: readonly string[];
  /** Calls it says were approved, as text. */
  readonly approvals: readonly string[];
  /** Processes it says its commands run in. */
  readonly pids: readonly number[];
  /** The model it names, if another one is used. */
  readonly model: string | null;
}

export function claimsShown({ rules, approvals, pids, model }: Claims): string[] {
  const words: string[] = [];
  if (rules.length > 0)
    words.push(
      `The journal of this session claims permission to run without asking: ${some(rules.map((rule) => `"${rule}"`))}. You have not allowed that in this session on this machine, so it is ignored.`,
    );
  if (approvals.length > 0)
    words.push(
      `The journal of this session claims that these calls were approved: ${some(approvals)}. You have not approved them on this machine, so they do not run without asking you.`,
    );
  if (pids.length > 0)
    words.push(
      `The journal of this session names processes that your agent did not start (${some(pids.map(String))}). Holdfast neither waits for them nor stops them.`,
    );
  if (model !== null)
    words.push(
      `The journal of this session names the model ${some([model])}. You have not used it here, so your own model is used; choose another with --model.`,
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
