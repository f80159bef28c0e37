import { fileURLToPath } from "node:url";
import type { Store, Summary } from "holdfast";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import { plainLine } from "../terminal/plain.ts";
import { ago } from "../terminal/time.ts";

export const WHOLE_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Fewer characters never match: a typo must not delete a session. */
const CHARACTERS_MIN = 4;
const CANDIDATES_MAX = 10;
/** Ids start with their time in milliseconds, so two sessions rarely share this prefix. */
const SHORT = 13;

/** All sessions of a store, newest first, including those without a turn. */
export async function* allSessions(store: Store): AsyncGenerator<Summary, void, undefined> {
  let after: string | undefined;
  do {
    const page = await store.list({ empty: true, limit: 1000, ...defined({ after }) });
    yield* page.sessions;
    after = page.next;
  } while (after !== undefined);
}

/**
 * Finds the session a user means: an id, its first or last characters (four or more), or `latest` (`-`), the last one
 * written to that is not empty, unreadable or a sub-agent's. Throws CommandError SESSION_NOT_FOUND, SESSION_AMBIGUOUS.
 */
export async function resolveId(store: Store, given: string): Promise<string> {
  const wanted = given.trim().toLowerCase();
  if (WHOLE_ID.test(wanted)) {
    if (await store.has(wanted)) return wanted;
    throw notFound(`No session ${wanted} in ${placeOf(store)}.`);
  }
  if (wanted === "latest" || wanted === "-") {
    for await (const { id, turns, queued, parent, unreadable } of allSessions(store))
      if (!parent && !unreadable && turns + queued > 0) return id;
    throw new CommandError(
      EXIT.notFound,
      "SESSION_NOT_FOUND",
      `No sessions in ${placeOf(store)} yet. "holdfast config" shows the address in use; "holdfast run" or "holdfast chat" starts a session.`,
    );
  }
  if (wanted.length < CHARACTERS_MIN || !/^[0-9a-f-]+$/.test(wanted))
    throw notFound(
      `"${plainLine(given).slice(0, 60)}" is not a session id. Give at least ${CHARACTERS_MIN} characters from the start or end of one, or "latest".`,
    );
  const begins: Summary[] = [];
  const ends: Summary[] = [];
  for await (const session of allSessions(store)) {
    if (session.id.startsWith(wanted)) begins.push(session);
    else if (session.id.endsWith(wanted)) ends.push(session);
  }
  const found = begins.length > 0 ? begins : ends;
  if (found.length === 1) return found[0]!.id;
  if (found.length === 0) throw notFound(`No session in ${placeOf(store)} starts or ends with "${wanted}".`);
  const lines = found
    .slice(0, CANDIDATES_MAX)
    .map(
      ({ id, title, at }) => `  ${id}  ${plainLine(title).slice(0, 50) || "(no prompt yet)"} (${ago(at, Date.now())})`,
    );
  const more = found.length > CANDIDATES_MAX ? [`  and ${found.length - CANDIDATES_MAX} more`] : [];
  throw new CommandError(
    EXIT.notFound,
    "SESSION_AMBIGUOUS",
    [`"${wanted}" matches ${found.length} sessions. Give more of the id:`, ...lines, ...more].join("\n"),
  );
}

/** The library cuts prompts used as titles to this length. */
const PROMPT_CHARACTERS = 80;

/**
 * The title in lists: the session's own, or its first prompt, which a compaction may have removed. Empty if there is
 * none.
 */
export async function listedTitle(store: Store, id: string): Promise<string> {
  for await (const session of allSessions(store)) if (session.id === id) return session.title;
  return "";
}

/** Keeps a fork from being named after a summary. A longer title is the source's own, which a fork inherits uncut. */
export async function titleForFork(store: Store, id: string): Promise<{ readonly title?: string }> {
  const title = await listedTitle(store, id);
  return title === "" || title.length > PROMPT_CHARACTERS ? {} : { title };
}

/** The shortest prefix that tells these ids apart, or the whole id. */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const times = new Map<string, number>();
  for (const id of ids) times.set(id.slice(0, SHORT), (times.get(id.slice(0, SHORT)) ?? 0) + 1);
  return new Map(ids.map((id) => [id, times.get(id.slice(0, SHORT)) === 1 ? id.slice(0, SHORT) : id]));
}

/** The address for people: a path if it is a folder. */
export function placeOf({ url }: Store): string {
  return plainLine(url.startsWith("file:") ? fileURLToPath(url) : url);
}

function notFound(message: string): CommandError {
  return new CommandError(EXIT.notFound, "SESSION_NOT_FOUND", `${message} "holdfast ls --all" lists the sessions.`);
}
