import type { Command } from "commander";
import type { ListQuery, SearchHit } from "holdfast";
import { defined } from "../../defined.ts";
import { EXIT } from "../../exit.ts";
import { shortId, shortIds } from "../../short-id.ts";
import { withStore } from "../../store/open.ts";
import { placeOf, summariesOf } from "../../store/session-id.ts";
import { tellUnreadable } from "../../store/unreadable-sessions.ts";
import { paintFor } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { type Progress, progressOn } from "../../terminal/progress.ts";
import { ago } from "../../terminal/time.ts";
import { fit } from "../../terminal/width.ts";
import { countOf, timeOf } from "../arguments.ts";

interface Options {
  readonly agents?: true;
  readonly here?: true;
  readonly app?: string;
  readonly since?: string;
  readonly limit: number;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("search")
    .argument("<words...>", "words to find, all of them; the last may be the start of a word")
    .summary("search titles and messages")
    .description(
      "Finds sessions by words in their titles and messages, newest sessions first. Only the first eight million characters of a message are searched. Exit code 1 if nothing is found, 5 if a session could not be read.",
    )
    .option("--agents", "in the sessions of other agents on this machine, such as Claude Code and Codex")
    .option("--here", "only sessions of this folder")
    .option("--app <name>", "only sessions of this program")
    .option("--since <time>", "only sessions written to since a date, or within an age such as 2h or 7d", timeOf)
    .option("--limit <n>", "maximum number to show", countOf, 50)
    .option("--json", "one JSON object per hit, one per line")
    .addHelpText("after", "\nExample:\n  holdfast search flaky test --since 7d")
    .action(async (words: readonly string[], options: Options, command: Command) => {
      if (options.agents) {
        const { searchAgentSessions } = await import("./agent-sessions.ts");
        return searchAgentSessions(words.join(" "), options);
      }
      return withStore(
        command.optsWithGlobals(),
        async (store) => {
          const { here, app, since, limit } = options;
          const query: ListQuery = {
            ...(here ? { cwd: process.cwd() } : {}),
            ...defined({ app, since }),
            // Ask for one more than is shown, to know whether there are more.
            limit: options.json ? limit : limit + 1,
          };
          const hits: SearchHit[] = [];
          const unread: { id: string; why: { code: string; message: string } }[] = [];
          const cut: string[] = [];
          const onIncomplete = (id: string, why: { code: string; message: string } | null): void =>
            void (why ? unread.push({ id, why }) : cut.push(id));
          let progress: Progress | null = null;
          // Only a store that has many sessions to index first calls it.
          const onProgress = ({ done, total }: { readonly done: number; readonly total: number }): void => {
            progress ??= progressOn(process.stderr, total);
            progress.show(done, "sessions indexed for this search");
            if (done === total) progress.clear();
          };
          for await (const hit of store.search(words.join(" "), query, { onIncomplete, onProgress })) {
            if (options.json) process.stdout.write(`${jsonText(hit)}\n`);
            hits.push(hit);
          }
          if (hits.length === 0) nothingFound(placeOf(store));
          if (cut.length > 0) process.stderr.write(cutWords(cut));
          tellUnreadable(unread);
          if (options.json || hits.length === 0) return;
          const shown = hits.slice(0, limit);
          const summaries = await summariesOf(store, new Set(shown.map(({ session }) => session)));
          const paint = paintFor(process.stdout);
          const columns = process.stdout.columns || Number.POSITIVE_INFINITY;
          const short = shortIds([...new Set(shown.map(({ session }) => session))]);
          let last = "";
          for (const { session, excerpt } of shown) {
            if (session !== last) {
              const about = summaries.get(session);
              const words = about ? `  ${plainLine(about.title)} (${ago(about.at, Date.now())})` : "";
              process.stdout.write(
                `${last === "" ? "" : "\n"}${paint("name", short.get(session)!)}${fit(words, columns - short.get(session)!.length)}\n`,
              );
            }
            process.stdout.write(`  ${fit(plainLine(excerpt), columns - 2)}\n`);
            last = session;
          }
          if (hits.length > limit) process.stdout.write(`\n${paint("faint", "There are more: --limit <n>.")}\n`);
        },
        nothingFound,
      );
    });
}

function cutWords(ids: readonly string[]): string {
  const which = ids.length === 1 ? `session ${shortId(ids[0]!)} has` : `${ids.length} sessions have`;
  return `holdfast: Only the first eight million characters of a message are searched, and ${which} a longer one.\n`;
}

/** Says where it looked: that is half of the answer. */
function nothingFound(place: string): void {
  process.stderr.write(`Nothing found in ${place}.\n`);
  process.exitCode = EXIT.failed;
}
