import { type Account, type AcpMessage, accountOf, dialects, type Store, type Summary } from "holdfast";
import { openWrapStore } from "../acp/run-wrap.ts";
import type { Config } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { shortId } from "../short-id.ts";
import { assertStore } from "../store/open.ts";
import { resolveId, summariesOf } from "../store/session-id.ts";
import { plainLine } from "../terminal/plain.ts";
import { typedCommand } from "../typed-command.ts";
import type { RunOptions } from "./run.ts";

/** A session of an agent that is driven, as it was before. */
export interface AgentSession {
  readonly journal: string;
  /** The id that the agent's editors know. */
  readonly id: string;
  readonly turns: number;
  readonly account: Account;
  /** What the last turn began with. */
  readonly prompt: string;
}

/**
 * The session that the options name; null for a new one. The store is closed again: the process that runs the agent
 * opens it. Throws CommandError SESSION_NOT_FOUND, SESSION_FOREIGN, FOLDER_UNKNOWN.
 */
export async function agentSession(
  command: readonly string[],
  { resume, continue: isLatest, finish }: Pick<RunOptions, "resume" | "continue" | "finish">,
  config: Config,
): Promise<AgentSession | null> {
  if (resume === undefined && !isLatest && !finish) return null;
  await assertStore(config);
  await using store = await openWrapStore(config);
  const { AGENT, agentOf, SESSION } = await import("@holdfast/acp/internal/wrap");
  const agent = agentOf(command);
  const cwd = process.cwd();
  const summary =
    resume === undefined
      ? await newestOf(store, { cwd, labels: { [AGENT]: agent } })
      : await summaryOf(store, await resolveId(store, resume));
  const { id: journal, labels = {}, turns, cwd: folder } = summary;
  const id = labels[SESSION];
  if (id === undefined || labels[AGENT] !== agent) throw foreign(journal);
  if (folder !== undefined && folder !== cwd) throw elsewhere(journal, folder);
  const reading = await store.read<AcpMessage>(journal);
  const prompt = reading.interruption ? dialects.acp.text(reading.interruption.prompt.message) : "";
  return { ...{ journal, id, turns, prompt }, account: accountOf(reading) };
}

/** The account of a session that has just been driven. */
export async function accountAfter(journal: string, config: Config): Promise<Account> {
  await using store = await openWrapStore(config);
  return accountOf(await store.read(journal));
}

async function newestOf(store: Store, query: { readonly cwd: string; readonly labels: Record<string, string> }) {
  const { sessions } = await store.list({ ...query, limit: 1 });
  const [newest] = sessions;
  if (newest) return newest;
  const message = `No session of this agent in this folder (${plainLine(query.cwd)}). The agent's command must be the same as before. Drop --continue and --finish to start one, or name one with --resume: "${typedCommand("ls")}" lists them.`;
  throw new CommandError(EXIT.notFound, "SESSION_NOT_FOUND", message);
}

async function summaryOf(store: Store, id: string): Promise<Summary> {
  const found = (await summariesOf(store, new Set([id]))).get(id);
  if (found) return found;
  throw new CommandError(EXIT.notFound, "SESSION_NOT_FOUND", `Session ${shortId(id)} is not listed.`);
}

function foreign(journal: string): CommandError {
  const message = `Session ${shortId(journal)} is not one of this agent: it was recorded with another command, or by another program. Nothing was started. "${typedCommand(`show ${shortId(journal)}`)}" shows it.`;
  return new CommandError(EXIT.usage, "SESSION_FOREIGN", message);
}

function elsewhere(journal: string, folder: string): CommandError {
  const place = plainLine(folder).replaceAll("'", `'\\''`);
  const message = `Session ${shortId(journal)} works in another folder, and its agent knows it there. Nothing was started. If you trust that folder: cd '${place}' and try again.`;
  return new CommandError(EXIT.usage, "FOLDER_UNKNOWN", message);
}
