import type { SearchHit, Store } from "holdfast";
import { timeWords } from "../export/document.ts";
import { summariesOf } from "../store/session-id.ts";
import { type CleanOptions, lineOf } from "./clean.ts";
import { count, type Filter, queryOf, TITLE_COLUMNS } from "./list.ts";
import type { Answer } from "./quote.ts";

const EXCERPT_COLUMNS = 300;
const NAMED_MAX = 5;
/** The search starts again for each page, so pages end here. */
export const HITS_MAX = 1_000;

export interface SearchInput extends Filter {
  readonly query: string;
  readonly limit: number;
  /** How many hits to skip. */
  readonly cursor?: number | undefined;
}

export async function searchSessions(store: Store, input: SearchInput, cleaning: CleanOptions): Promise<Answer> {
  const { query, limit, cursor: skip = 0 } = input;
  const hits: SearchHit[] = [];
  const unread: string[] = [];
  const cut: string[] = [];
  let seen = 0;
  let more = false;
  const onIncomplete = (id: string, why: object | null): void => void (why ? unread : cut).push(id);
  for await (const hit of store.search(query, queryOf(input), { onIncomplete })) {
    if (seen++ < skip) continue;
    if (hits.length === limit) {
      more = true;
      break;
    }
    hits.push(hit);
  }
  const next = [
    ...(more ? [moreWords(skip + limit)] : []),
    ...(unread.length > 0
      ? [`${named(unread)} could not be read. list_sessions with status "unreadable" says why.`]
      : []),
    ...(cut.length > 0
      ? [`Only the first eight million characters of a message are searched; ${named(cut)} has a longer one.`]
      : []),
  ].join("\n");
  if (hits.length === 0)
    return { about: "Nothing found. All words must be in one message; the last may be the start of a word.", next };
  const sessions = [...new Set(hits.map(({ session }) => session))];
  const summaries = await summariesOf(store, new Set(sessions));
  const quoted = sessions.map((session) => {
    const about = summaries.get(session);
    const title = about ? `, last written ${timeWords(about.at)}: ${lineOf(about.title, cleaning, TITLE_COLUMNS)}` : "";
    const found = hits
      .filter((hit) => hit.session === session)
      .map(({ message, excerpt }) => {
        const where = message === "" ? "title" : `message ${lineOf(message, cleaning, TITLE_COLUMNS)}`;
        return `  ${where}\n    ${lineOf(excerpt, cleaning, EXCERPT_COLUMNS)}`;
      });
    return [`session ${session}${title}`, ...found].join("\n");
  });
  return {
    about: `${count(hits.length, "hit")} in ${count(sessions.length, "session")}, newest sessions first. Pass a session and a message to read_session to read it in context.`,
    quoted: quoted.join("\n\n"),
    next,
  };
}

function moreWords(next: number): string {
  return next >= HITS_MAX
    ? "There are more hits than can be listed. Use more words, or limit the search by folder, program or time."
    : `There are more. Call search_sessions again with cursor ${next}.`;
}

function named(ids: readonly string[]): string {
  const rest = ids.length - NAMED_MAX;
  return `${ids.length === 1 ? "session" : "sessions"} ${ids.slice(0, NAMED_MAX).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
