import { type Command, Option } from "commander";
import type { ListQuery, Summary } from "holdfast";
import { defined } from "../../defined.ts";
import { AGENT_STATES, type AgentState } from "../../doctor/agent-states.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { shortIds } from "../../short-id.ts";
import { withStore } from "../../store/open.ts";
import { placeOf } from "../../store/session-id.ts";
import { type ShownStatus, STATUSES, shownStatus } from "../../store/shown-status.ts";
import { tellUnreadable, unreadableIn } from "../../store/unreadable-sessions.ts";
import { type Paint, paintFor, type Style } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { tableLines } from "../../terminal/table.ts";
import { ago } from "../../terminal/time.ts";
import { countOf, timeOf } from "../arguments.ts";

interface Options {
  readonly agents?: true;
  readonly here?: true;
  readonly status?: ShownStatus | AgentState;
  readonly app?: string;
  readonly since?: string;
  readonly limit: number;
  readonly all?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("ls")
    .summary("list sessions, newest first")
    .description(
      "Lists the sessions of all folders, newest first. Statuses: running (a process has it open and a turn is running), interrupted (the last turn did not complete), stopped (on purpose), failed, waiting (for a person), paused (continues by itself, at once or later), parked (workers gave up on it), queued (prompts are waiting), unreadable (the reason is below the list; exit code 5), idle. With --agents, the sessions of other agents where they are, with what is known of each: healthy, damaged, unread (not read since it changed; search --agents and doctor read it), unreadable.",
    )
    .option("--agents", "the sessions of other agents on this machine, such as Claude Code and Codex")
    .option("--here", "only sessions of this folder")
    .addOption(new Option("--status <status>", "only sessions with this status").choices(ALL_STATUSES))
    .option("--app <name>", "only sessions of this program")
    .option("--since <time>", "only sessions written to since a date, or within an age such as 2h or 7d", timeOf)
    .option("--limit <n>", "maximum number to show", countOf, 50)
    .option("--all", "all sessions, including those without a turn and those of sub-agents")
    .option("--json", "one JSON object per session, one per line")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast ls --here --status interrupted\n  holdfast ls --since 7d --json | jq -r .id",
    )
    .action((options: Options, command: Command) => {
      const status = checkedStatus(options);
      if (options.agents) return listOfAgents(options);
      return withStore(
        command.optsWithGlobals(),
        async (store) => {
          const found: Summary[] = [];
          const max = options.all ? Number.POSITIVE_INFINITY : options.limit;
          let after: string | undefined;
          let more = false;
          do {
            const page = await store.list({
              ...queryOf(options, status, process.cwd()),
              ...defined({ after }),
            });
            after = page.next;
            for (const session of page.sessions) {
              if (options.status && shownStatus(session) !== options.status) continue;
              // A sub-agent's session is reached through its parent.
              if (session.parent && !options.all) continue;
              if (found.length >= max) {
                more = true;
                break;
              }
              found.push(session);
            }
          } while (after !== undefined && !more);
          if (options.json)
            for (const session of found)
              process.stdout.write(`${jsonText({ ...session, status: shownStatus(session) })}\n`);
          else
            process.stdout.write(
              listText(found, {
                place: placeOf(store),
                isFiltered: Boolean(options.here || options.status || options.app || options.since),
                more,
                now: Date.now(),
                columns: process.stdout.columns,
                paint: paintFor(process.stdout),
              }),
            );
          const unreadable = await unreadableIn(store);
          tellUnreadable(unreadable.map(({ id, unreadable: why }) => ({ id, why: why! })));
        },
        // A new user has no store yet: that is an empty list, not an error. Say where we looked.
        (place) => void (options.json || process.stdout.write(`No sessions: there is no store in ${place} yet.\n`)),
      );
    });
}

const ALL_STATUSES = [...new Set([...STATUSES, ...AGENT_STATES])];

async function listOfAgents(options: Options): Promise<void> {
  const { listAgentSessions } = await import("./agent-sessions.ts");
  await listAgentSessions({ ...options, status: options.status as AgentState | undefined });
}

/** Sessions of other agents have other statuses. */
function checkedStatus({ status, agents }: Options): ShownStatus | undefined {
  const known: readonly string[] = agents ? AGENT_STATES : STATUSES;
  if (status !== undefined && !known.includes(status)) {
    const words = `${agents ? "With" : "Without"} --agents, --status takes ${known.join(", ")}, not ${status}.`;
    throw new CommandError(EXIT.usage, "USAGE", words);
  }
  return status as ShownStatus | undefined;
}

const COLOURS: Readonly<Partial<Record<ShownStatus, Style>>> = {
  running: "good",
  interrupted: "bad",
  waiting: "warning",
  parked: "bad",
  queued: "warning",
  unreadable: "bad",
};

function listText(
  sessions: readonly Summary[],
  {
    place,
    isFiltered,
    more,
    now,
    columns,
    paint,
  }: {
    readonly place: string;
    readonly isFiltered: boolean;
    readonly more: boolean;
    readonly now: number;
    readonly columns: number | undefined;
    readonly paint: Paint;
  },
): string {
  if (sessions.length === 0) return `No ${isFiltered ? "such sessions" : "sessions"} in ${place}.\n`;
  const short = shortIds(sessions.map(({ id }) => id));
  const rows = sessions.map((session) => [
    short.get(session.id)!,
    shownStatus(session),
    // Nothing is known about a session that was never read.
    session.unreadable && session.turns + session.queued === 0 ? "?" : ago(session.at, now),
    `${session.parent ? "sub-agent: " : ""}${plainLine(session.title) || (session.unreadable ? "?" : "(no prompt yet)")}`,
    plainLine(session.cwd ?? ""),
  ]);
  const lines = tableLines(
    [
      { title: "session" },
      { title: "status" },
      { title: "written", isExtra: true },
      { title: "title", shrinksTo: 16 },
      { title: "folder", shrinksTo: 8, isExtra: true },
    ],
    rows,
    columns,
    (text, row, column) => {
      if (row === "title") return paint("heading", text);
      const colour =
        column === 1 ? COLOURS[shownStatus(sessions[row]!)] : column === 2 || column === 4 ? "faint" : undefined;
      return colour ? paint(colour, text) : text;
    },
  );
  if (more) lines.push(paint("faint", "There are more: --limit <n>, or --all."));
  return `${lines.join("\n")}\n`;
}

function queryOf({ here, app, since, limit, all }: Options, status: ShownStatus | undefined, cwd: string): ListQuery {
  return {
    ...(here ? { cwd } : {}),
    ...defined({ app, since }),
    ...(status === undefined || status === "unreadable" ? {} : { status: status === "queued" ? "idle" : status }),
    ...(status === "unreadable" ? { unreadable: true } : {}),
    ...(all ? { empty: true } : {}),
    // Ask for one more than is shown, to know whether there are more.
    limit: all || status === "queued" || status === "idle" ? 1000 : limit + 1,
  };
}
