import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";
import { failureLines, failureOf } from "../failure.ts";
import { onDisk } from "./address.ts";
import { allSessions, resolveId, WHOLE_ID } from "./session-id.ts";

/** The sessions a command works on: the named ones, or all. */
export async function idsFor(store: Store, given: readonly string[], all: boolean): Promise<string[]> {
  if (given.length > 0 && all)
    throw new CommandError(EXIT.usage, "USAGE", "Give ids or --all, not both. Nothing was touched.");
  if (all) {
    const { value: listed = [], failure } = await attempt(() => Array.fromAsync(allSessions(store), ({ id }) => id));
    const others = await findUnlisted(store, new Set(listed));
    // A list fails on any unreadable session. A loop over all sessions reports that one and continues.
    if (failure && others.length === 0) throw failure.error;
    return [...listed, ...others];
  }
  const ids: string[] = [];
  for (const one of given) ids.push(await resolveId(store, one));
  return [...new Set(ids)];
}

/** Sessions too damaged to be listed: no segment has a whole record. "All" must include them above all. */
async function findUnlisted(store: Store, listed: ReadonlySet<string>): Promise<string[]> {
  const place = onDisk(store.url);
  if (place?.kind !== "folder") return [];
  const ids: string[] = [];
  const { value: names = [] } = await attempt(async () => readdirSync(join(place.path, "sessions")).sort());
  for (const name of names) {
    if (!WHOLE_ID.test(name) || listed.has(name)) continue;
    // A session that cannot be read counts as existing.
    const { value: isThere = true } = await attempt(() => store.has(name));
    if (isThere) ids.push(name);
  }
  return ids;
}

/** Leaves store and system errors for the caller to judge. */
async function attempt<T>(
  work: () => Promise<T>,
): Promise<{ readonly value?: T; readonly failure?: { readonly error: unknown } }> {
  try {
    return { value: await work() };
  } catch (error) {
    const isSystem = error instanceof Error && "syscall" in error;
    if (!isSystem && failureOf(error).code === "UNEXPECTED") throw error;
    return { failure: { error } };
  }
}

/**
 * Runs `work` for each session and continues after a failure, which it reports and keeps as the exit code. Returns how
 * many failed.
 */
export async function forEach(ids: readonly string[], work: (id: string) => Promise<void>): Promise<number> {
  let failed = 0;
  const said = new Set<string>();
  for (const id of ids) {
    try {
      await work(id);
    } catch (error) {
      const failure = failureOf(error);
      if (failure.code === "UNEXPECTED") throw error;
      // A problem with the store affects every session: print each hint once.
      const hints = failure.hints.filter((hint) => !said.has(hint));
      for (const hint of hints) said.add(hint);
      process.stderr.write(`${failureLines({ ...failure, hints }, process.stderr.columns).join("\n")}\n`);
      process.exitCode = failure.exitCode;
      failed++;
    }
  }
  return failed;
}
