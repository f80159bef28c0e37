import type { Store, Summary } from "holdfast";
import { defined } from "../defined.ts";
import { EXIT } from "../exit.ts";
import { shortIds, withShortIds } from "../short-id.ts";
import { plainLine } from "../terminal/plain.ts";
import { wrapWords } from "../terminal/wrap-words.ts";
import { typedCommand } from "../typed-command.ts";

/** The rest are only counted. */
const REASONS_MAX = 3;

/** Every unreadable session of the store. */
export async function unreadableIn(store: Store): Promise<Summary[]> {
  const found: Summary[] = [];
  let after: string | undefined;
  do {
    const page = await store.list({ unreadable: true, limit: 1000, ...defined({ after }) });
    found.push(...page.sessions);
    after = page.next;
  } while (after !== undefined);
  return found;
}

/**
 * Lists the first unreadable sessions on standard error, each with its reason, and sets the exit code. The command has
 * already handled the others.
 */
export function tellUnreadable(
  sessions: readonly { readonly id: string; readonly why: { readonly code: string; readonly message: string } }[],
): void {
  if (sessions.length === 0) return;
  const count = sessions.length === 1 ? "1 session" : `${sessions.length} sessions`;
  process.stderr.write(`holdfast: Could not read ${count} in this store; the others are not affected:\n`);
  const { columns } = process.stderr;
  const shown = sessions.slice(0, REASONS_MAX);
  const short = shortIds(shown.map(({ id }) => id));
  for (const { id, why } of shown) {
    const words = `  ${short.get(id)}  ${withShortIds(plainLine(why.message))} [${why.code}]`;
    process.stderr.write(`${wrapWords(words, columns, 2).join("\n")}\n`);
  }
  if (sessions.length > REASONS_MAX)
    process.stderr.write(
      `  and ${sessions.length - REASONS_MAX} more: "${typedCommand("ls --status unreadable --json")}" lists them all\n`,
    );
  process.exitCode = EXIT.store;
}
