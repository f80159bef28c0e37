import type { Store } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";
import { failureOf } from "../failure.ts";
import { allSessions, resolveId } from "./session-id.ts";

/** The sessions that a command is to work on: those that are named, or all. */
export async function idsFor(store: Store, given: readonly string[], all: boolean): Promise<string[]> {
  if (given.length > 0 && all)
    throw new CommandError(EXIT.usage, "USAGE", "Give ids or --all, not both. Nothing was touched.");
  if (all) return (await Array.fromAsync(allSessions(store))).map(({ id }) => id);
  const ids: string[] = [];
  for (const one of given) ids.push(await resolveId(store, one));
  return [...new Set(ids)];
}

/** Does it for each, and goes on after one that failed: says so, and leaves its exit code. Answers how many failed. */
export async function forEach(ids: readonly string[], work: (id: string) => Promise<void>): Promise<number> {
  let failed = 0;
  for (const id of ids) {
    try {
      await work(id);
    } catch (error) {
      const { exitCode, code, message, hints } = failureOf(error);
      if (code === "UNEXPECTED") throw error;
      process.stderr.write(`holdfast: ${message} [${code}]\n`);
      for (const hint of hints) process.stderr.write(`  ${hint}\n`);
      process.exitCode = exitCode;
      failed++;
    }
  }
  return failed;
}
