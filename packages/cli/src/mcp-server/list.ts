import type { ListQuery, Store, Summary } from "holdfast";
import { defined } from "../defined.ts";
import { timeWords } from "../export/document.ts";
import { type ShownStatus, shownStatus } from "../store/shown-status.ts";
import { durationMs } from "../terminal/time.ts";
import { type CleanOptions, lineOf } from "./clean.ts";
import type { Answer } from "./quote.ts";

export const TITLE_COLUMNS = 200;
const REASON_COLUMNS = 300;
/** A filter may reject almost every row of a large store: then a page is shorter than asked for. */
const STORE_PAGES_MAX = 20;

/** What both a list and a search can be limited to. */
export interface Filter {
  readonly folder?: string | undefined;
  readonly app?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export interface ListInput extends Filter {
  readonly status?: ShownStatus | undefined;
  readonly sub_agents?: boolean | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** `since` and `until` are dates, or ages such as 7d. The store refuses anything else (QUERY_INVALID). */
export function queryOf({ folder, app, since, until }: Filter, now = Date.now()): ListQuery {
  const time = (given: string | undefined): string | undefined => {
    const age = given === undefined ? null : durationMs(given);
    return age === null ? given : new Date(now - age).toISOString();
  };
  return defined({ cwd: folder, app, since: time(since), until: time(until) });
}

export async function listSessions(store: Store, input: ListInput, cleaning: CleanOptions): Promise<Answer> {
  const { status, sub_agents, limit } = input;
  const query: ListQuery = {
    ...queryOf(input),
    ...(status === undefined || status === "unreadable" ? {} : { status: status === "queued" ? "idle" : status }),
    ...(status === "unreadable" ? { unreadable: true } : {}),
  };
  const found: Summary[] = [];
  let after = input.cursor;
  let pages = 0;
  do {
    // Never more than are missing, so that the store's cursor is after the last session shown.
    const page = await store.list({ ...query, limit: limit - found.length, ...defined({ after }) });
    after = page.next;
    pages += 1;
    for (const session of page.sessions) {
      if (status !== undefined && shownStatus(session) !== status) continue;
      // A sub-agent's session is reached through its parent.
      if (session.parent && !sub_agents) continue;
      found.push(session);
    }
  } while (after !== undefined && found.length < limit && pages < STORE_PAGES_MAX);
  const next =
    after === undefined ? "" : `There are more. Call list_sessions again with cursor ${JSON.stringify(after)}.`;
  if (found.length === 0) return { about: `No such sessions in the store${next === "" ? "" : " so far"}.`, next };
  return {
    about: `${count(found.length, "session")}, last written first. Pass an id to read_session.`,
    quoted: found.map((session) => rowText(session, cleaning)).join("\n\n"),
    next,
  };
}

function rowText(session: Summary, cleaning: CleanOptions): string {
  const { id, at, turns, cwd, app, title, parent, unreadable } = session;
  const line = (text: string): string => lineOf(text, cleaning, TITLE_COLUMNS);
  return [
    `session ${id}`,
    `  status: ${shownStatus(session)}; last written ${timeWords(at)}; ${count(turns, "turn")}${app ? `; program: ${line(app)}` : ""}`,
    ...(unreadable
      ? [`  cannot be read: ${lineOf(unreadable.message, cleaning, REASON_COLUMNS)} [${unreadable.code}]`]
      : []),
    ...(parent ? [`  sub-agent of session ${line(parent.session)}`] : []),
    ...(cwd ? [`  folder: ${line(cwd)}`] : []),
    `  title: ${line(title) || "(no prompt yet)"}`,
  ].join("\n");
}

export function count(number: number, unit: string): string {
  return `${number} ${unit}${number === 1 ? "" : "s"}`;
}
