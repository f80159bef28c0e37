import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";
import { failureOf } from "../failure.ts";
import { onDisk } from "./address.ts";
import { allSessions, resolveId, WHOLE_ID } from "./session-id.ts";

/** The sessions that a command is to work on: those that are named, or all. */
export async function idsFor(store: Store, given: readonly string[], all: boolean): Promise<string[]> {
  if (given.length > 0 && all)
    throw new CommandError(EXIT.usage, "USAGE", "Give ids or --all, not both. Nothing was touched.");
  if (all) {
    const listed = (await Array.fromAsync(allSessions(store))).map(({ id }) => id);
    return [...listed, ...(await unlisted(store, new Set(listed)))];
  }
  const ids: string[] = [];
  for (const one of given) ids.push(await resolveId(store, one));
  return [...new Set(ids)];
}

/** Sessions of which so little is left that no list has them: segments without one whole record. Whoever means all means those first of all. */
async function unlisted(store: Store, listed: ReadonlySet<string>): Promise<string[]> {
  const place = onDisk(store.url);
  if (place?.kind !== "folder") return [];
  const ids: string[] = [];
  for (const name of readdirSync(join(place.path, "sessions")).sort())
    if (WHOLE_ID.test(name) && !listed.has(name) && (await store.has(name))) ids.push(name);
  return ids;
}

/** Does it for each, and goes on after one that failed: says so, and leaves its exit code. Answers how many failed. */
export async function forEach(ids: readonly string[], work: (id: string) => Promise<void>): Promise<number> {
  let failed = 0;
  const said = new Set<string>();
  for (const id of ids) {
    try {
      await work(id);
    } catch (error) {
      const { exitCode, code, message, hints } = failureOf(error);
      if (code === "UNEXPECTED") throw error;
      process.stderr.write(`holdfast: ${message} [${code}]\n`);
      // What is wrong with the store is wrong with each of its sessions: once is enough to say what can be done about it.
      for (const hint of hints) if (!said.has(hint)) process.stderr.write(`  ${hint}\n`);
      for (const hint of hints) said.add(hint);
      process.exitCode = exitCode;
      failed++;
    }
  }
  return failed;
}
