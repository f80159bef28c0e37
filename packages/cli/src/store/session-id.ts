import type { Store, Summary } from "holdfast";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import { isMeant, shortIds } from "../short-id.ts";
import { plainLine } from "../terminal/plain.ts";
import { ago } from "../terminal/time.ts";
import { fit } from "../terminal/width.ts";
import { typedCommand } from "../typed-command.ts";
import { onDisk } from "./address.ts";

/** As much of a store as finding a session takes. */
export interface SessionList extends Pick<Store, "list" | "has" | "url"> {
  /** Whether somebody has it open. Then it counts although nothing has happened in it yet. */
  isLive?(id: string): Promise<boolean>;
}

export const WHOLE_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Fewer characters never match: a typo must not delete a session. */
const CHARACTERS_MIN = 4;
const CANDIDATES_MAX = 10;
const TITLE_COLUMNS = 50;

/** All sessions of a store, newest first, including those without a turn. */
export async function* allSessions(store: Pick<Store, "list">): AsyncGenerator<Summary, void, undefined> {
  let after: string | undefined;
  do {
    const page = await store.list({ empty: true, limit: 1000, ...defined({ after }) });
    yield* page.sessions;
    after = page.next;
  } while (after !== undefined);
}

/** Of these sessions, those that are listed. */
export async function summariesOf(store: Store, ids: ReadonlySet<string>): Promise<Map<string, Summary>> {
  const found = new Map<string, Summary>();
  for await (const session of allSessions(store)) {
    if (ids.has(session.id)) found.set(session.id, session);
    if (found.size === ids.size) break;
  }
  return found;
}

/**
 * Finds the session a user means: an id, its first or last characters (four or more), or `latest` (`-`), the last one
 * written to that is not unreadable, a sub-agent's, or empty (unless it is live). Throws CommandError
 * SESSION_NOT_FOUND, SESSION_AMBIGUOUS.
 */
export async function resolveId(store: SessionList, given: string): Promise<string> {
  const wanted = given.trim().toLowerCase();
  if (WHOLE_ID.test(wanted)) {
    if (await store.has(wanted)) return wanted;
    throw notFound(`No session ${wanted} in ${placeOf(store)}.`);
  }
  if (wanted === "latest" || wanted === "-") {
    for await (const { id, turns, queued, parent, unreadable } of allSessions(store))
      if (!parent && !unreadable && (turns + queued > 0 || (await store.isLive?.(id)))) return id;
    throw new CommandError(
      EXIT.notFound,
      "SESSION_NOT_FOUND",
      `No sessions in ${placeOf(store)} yet. "${typedCommand("config")}" shows the address in use; "holdfast run" or "holdfast chat" starts a session.`,
    );
  }
  if (partOfId(given) === null) throw notAnId(given);
  const found: Summary[] = [];
  for await (const session of allSessions(store)) if (isMeant(session.id, wanted)) found.push(session);
  return oneOf(found, wanted, placeOf(store)).id;
}

/** Where an id may be ambiguous, nothing is guessed: the command may delete the session. */
export function oneOf<S extends { readonly id: string; readonly title: string }>(
  found: readonly (S & { readonly at?: string; readonly trashedAt?: string })[],
  wanted: string,
  place: string,
): S {
  if (found.length === 1) return found[0]!;
  if (found.length === 0) throw notFound(`No session in ${place} starts or ends with "${wanted}".`);
  const short = shortIds(found.map(({ id }) => id));
  const lines = found.slice(0, CANDIDATES_MAX).map(({ id, title, at, trashedAt }) => {
    const when = trashedAt === undefined ? ago(at ?? "", Date.now()) : `deleted ${ago(trashedAt, Date.now())}`;
    return `  ${short.get(id)}  ${fit(plainLine(title), TITLE_COLUMNS) || "(no prompt yet)"} (${when})`;
  });
  const more = found.length > CANDIDATES_MAX ? [`  and ${found.length - CANDIDATES_MAX} more`] : [];
  throw new CommandError(
    EXIT.notFound,
    "SESSION_AMBIGUOUS",
    [`"${wanted}" matches ${found.length} sessions. Name one of them:`, ...lines, ...more].join("\n"),
  );
}

/** What a user may have typed of an id; null if it is no part of one. */
export function partOfId(given: string): string | null {
  const wanted = given.trim().toLowerCase();
  return wanted.length >= CHARACTERS_MIN && /^[0-9a-f-]+$/.test(wanted) ? wanted : null;
}

/** For something that cannot be part of an id. */
export function notAnId(given: string): CommandError {
  return notFound(
    `"${fit(plainLine(given), 60)}" is not a session id. Give at least ${CHARACTERS_MIN} characters from the start or end of one, or "latest".`,
  );
}

/** So that the mark of a fork is within the part of a title that lists keep. */
const FORK_TITLE_COLUMNS = 80;

/**
 * The title in lists: the session's own, or its first prompt, which a compaction may have removed. Empty if there is
 * none.
 */
export async function listedTitle(store: Store, id: string): Promise<string> {
  for await (const session of allSessions(store)) if (session.id === id) return session.title;
  return "";
}

/**
 * The title of a fork says that it is one, and of which turn: otherwise two sessions in a list look the same. Also
 * keeps a fork from being named after a summary.
 */
export async function titleForFork(store: Store, id: string, turn?: number): Promise<{ readonly title?: string }> {
  const title = await listedTitle(store, id);
  return title === "" ? {} : { title: forkTitle(title, turn) };
}

const FORK_MARK = / \(fork(?: (\d{1,6}))?(?: at turn \d{1,9})?\)$/;

/** `title (fork)`, `title (fork 2)` for a fork of that, `title (fork at turn 3)`. */
export function forkTitle(title: string, turn?: number): string {
  const [mark, count] = FORK_MARK.exec(title) ?? [];
  const own = mark === undefined ? title : title.slice(0, -mark.length);
  const number = mark === undefined ? "" : ` ${Number(count ?? 1) + 1}`;
  const base = fit(plainLine(own), FORK_TITLE_COLUMNS);
  return `${base} (fork${number}${turn === undefined ? "" : ` at turn ${turn}`})`;
}

/** The address for people: a path if it is a folder. */
export function placeOf({ url }: Pick<Store, "url">): string {
  const place = onDisk(url);
  return plainLine(place?.kind === "folder" ? place.path : url);
}

function notFound(message: string): CommandError {
  return new CommandError(
    EXIT.notFound,
    "SESSION_NOT_FOUND",
    `${message} "${typedCommand("ls --all")}" lists the sessions.`,
  );
}
