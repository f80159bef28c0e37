import type { SessionOverview } from "@holdfast/doctor";
import type { AgentSessionQuery, SessionWords } from "../../doctor/agent-sessions.ts";
import type { AgentState } from "../../doctor/agent-states.ts";
import { EXIT } from "../../exit.ts";
import { paintFor, type Style } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { tableLines } from "../../terminal/table.ts";
import { ago } from "../../terminal/time.ts";
import { fit } from "../../terminal/width.ts";

/** `ls --agents` and `search --agents`: the sessions of other agents, where they are. */

const COLOURS: Readonly<Partial<Record<AgentState, Style>>> = { damaged: "bad", unreadable: "bad", healthy: "good" };

export async function listAgentSessions(
  query: AgentSessionQuery & { readonly limit: number; readonly all?: true; readonly json?: true },
): Promise<void> {
  const { SessionWords, stateOf, wantedBy, withAgentSessions } = await import("../../doctor/agent-sessions.ts");
  const wanted = wantedBy(query);
  await withAgentSessions(false, async ({ all, refused }) => {
    const words = new SessionWords(all);
    const isShown = (each: SessionOverview): boolean =>
      wanted(each) && (query.all === true || titleOf(each) !== null || !["healthy", "unread"].includes(stateOf(each)));
    const max = query.all ? Number.POSITIVE_INFINITY : query.limit;
    const matches = all.filter(isShown);
    const shown = matches.slice(0, max);
    if (query.json)
      for (const each of shown) process.stdout.write(`${jsonText(sessionJson(each, stateOf(each), words))}\n`);
    else if (shown.length === 0)
      process.stdout.write(`No ${isFiltered(query) ? "such " : ""}sessions of agents here.\n`);
    else printList(shown, matches.length > shown.length, words, stateOf);
    tellRefused(refused);
  });
}

export async function searchAgentSessions(
  text: string,
  query: AgentSessionQuery & { readonly limit: number; readonly json?: true },
): Promise<void> {
  const { SessionWords, stateOf, wantedBy, withAgentSessions } = await import("../../doctor/agent-sessions.ts");
  const wanted = wantedBy(query);
  await withAgentSessions(true, async ({ index, all, refused }) => {
    const words = new SessionWords(all);
    const paint = paintFor(process.stdout);
    const columns = process.stdout.columns || Number.POSITIVE_INFINITY;
    let last: SessionOverview | null = null;
    let count = 0;
    const end = (): void => {
      if (last !== null && !query.json)
        for (const line of commandLines(last, words)) process.stdout.write(`  ${paint("faint", line)}\n`);
    };
    for await (const { session, excerpt } of index.search(text, wanted)) {
      if (count === query.limit) {
        end();
        last = null;
        if (!query.json) process.stdout.write(`\n${paint("faint", "There are more: --limit <n>.")}\n`);
        break;
      }
      count++;
      if (query.json) {
        process.stdout.write(`${jsonText({ ...sessionJson(session, stateOf(session), words), excerpt })}\n`);
        continue;
      }
      if (session.key !== last?.key) {
        end();
        const id = words.idOf(session);
        const about = `  ${session.agent}  ${shownTitle(session)} (${ago(timeOf(session), Date.now())})`;
        process.stdout.write(
          `${last === null ? "" : "\n"}${paint("name", plainLine(id))}${fit(about, columns - id.length)}\n`,
        );
      }
      process.stdout.write(`  ${fit(plainLine(excerpt), columns - 2)}\n`);
      last = session;
    }
    end();
    if (count === 0) {
      process.stderr.write(`Nothing found in ${all.length} ${all.length === 1 ? "session" : "sessions"} of agents.\n`);
      process.exitCode = EXIT.failed;
    }
    const unread = all.filter((each) => stateOf(each) === "unreadable").length;
    if (unread > 0)
      process.stderr.write(
        `holdfast: ${unread} ${unread === 1 ? "session" : "sessions"} could not be read: holdfast ls --agents --status unreadable\n`,
      );
    tellRefused(refused);
  });
}

const isFiltered = ({ here, app, since, status }: AgentSessionQuery): boolean =>
  Boolean(here || app !== undefined || since !== undefined || status !== undefined);
const timeOf = ({ at }: SessionOverview): string => new Date(at).toISOString();
const titleOf = ({ title, prompt }: SessionOverview): string | null => title ?? prompt;
const shownTitle = (session: SessionOverview): string => plainLine(titleOf(session) ?? "") || "(no prompt yet)";

function printList(
  sessions: readonly SessionOverview[],
  isMore: boolean,
  words: SessionWords,
  stateOf: (session: SessionOverview) => AgentState,
): void {
  const paint = paintFor(process.stdout);
  const now = Date.now();
  const lines = tableLines(
    [
      { title: "session" },
      { title: "agent" },
      { title: "state" },
      { title: "written", isExtra: true },
      { title: "title", shrinksTo: 16 },
      { title: "folder", shrinksTo: 8, isExtra: true },
    ],
    sessions.map((session) => [
      plainLine(words.idOf(session)),
      session.agent,
      stateOf(session),
      ago(timeOf(session), now),
      session.unreadable === null ? shownTitle(session) : plainLine(session.unreadable),
      plainLine(session.folder ?? ""),
    ]),
    process.stdout.columns,
    (text, row, column) => {
      if (row === "title") return paint("heading", text);
      const colour =
        column === 2 ? COLOURS[stateOf(sessions[row]!)] : column === 3 || column === 5 ? "faint" : undefined;
      return colour ? paint(colour, text) : text;
    },
  );
  if (isMore) lines.push(paint("faint", "There are more: --limit <n>, or --all."));
  const [newest] = sessions;
  const damaged = sessions.find((session) => stateOf(session) === "damaged");
  lines.push(...commandLines(damaged ?? newest!, words).map((line) => paint("faint", line)));
  process.stdout.write(`${lines.join("\n")}\n`);
}

function commandLines(session: SessionOverview, words: SessionWords): string[] {
  const { resume, import: bring, repair } = words.commandsOf(session);
  return [
    ...(repair === null ? [] : [`it is damaged: ${repair}`]),
    ...(resume === null ? [] : [`continue it: ${resume}`]),
    ...(bring === null ? [] : [`bring it into Holdfast: ${bring}`]),
  ];
}

function sessionJson(session: SessionOverview, state: AgentState, words: SessionWords): object {
  const { agent, id, path, title, prompt, folder, problems, unreadable } = session;
  return {
    ...{ agent, session: id, path, title, prompt, cwd: folder, at: timeOf(session), state },
    ...(problems && { problems: problems.count, kinds: problems.kinds }),
    ...(unreadable !== null && { unreadable }),
    commands: words.commandsOf(session),
  };
}

function tellRefused(refused: readonly string[]): void {
  if (refused.length === 0) return;
  for (const each of refused.slice(0, 10)) process.stderr.write(`holdfast: not looked into: ${plainLine(each)}\n`);
  if (refused.length > 10) process.stderr.write(`holdfast: and ${refused.length - 10} more\n`);
  process.exitCode = EXIT.store;
}
