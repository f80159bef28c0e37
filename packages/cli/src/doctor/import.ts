import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import {
  type Conversation,
  type ConversationMessage,
  Door,
  type FoundSession,
  keepSession,
  type ReadableSession,
  readConversations,
} from "@holdfast/doctor";
import type { AnthropicMessage, Session, Store } from "holdfast";
import { type Flags, loadConfig } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { addressOf, type OpenedStore, openBoth, redaction } from "../store/open.ts";
import { findSessions, sessionWithId } from "./examine.ts";
import { importedId, makeKeptFolder } from "./kept-folder.ts";

/** Sessions of other agents, brought into Holdfast. */

export interface Imported {
  readonly id: string;
  readonly agent: string;
  readonly from: string;
  /** Messages that were not there yet. */
  readonly added: number;
  readonly messages: number;
  readonly agents: readonly string[];
  /** Where the agent's files, or its rows of a database, are kept; null if the store has no place, or redacts. */
  readonly originals: string | null;
  readonly leftOut: readonly string[];
  readonly title: string | null;
  readonly conversations: readonly Conversation[];
}

/** The sessions at a path, or the one of this machine with an id, or the first or last characters of one. */
export async function sessionsNamed(given: string): Promise<readonly FoundSession[]> {
  using door = new Door();
  if (existsSync(given)) {
    const found: FoundSession[] = [];
    for await (const finding of findSessions([resolve(given)], door)) if (finding.agent !== null) found.push(finding);
    if (found.length > 0) return found;
    const message = `${given} is no session of an agent that this version knows. Nothing was imported.`;
    throw new CommandError(EXIT.notFound, "PATH_UNKNOWN", message);
  }
  return [sessionWithId(given, door)];
}

/** The store that sessions are brought into. */
export interface ImportTarget extends OpenedStore {
  /** Whether the agent's files are kept beside the store: not where credentials are to be redacted. */
  readonly keepsFiles: boolean;
}

/** The configured store; it is created if there is none yet. */
export async function openTarget(flags: Flags): Promise<ImportTarget> {
  const config = loadConfig(flags);
  // A sync for each session, as it is closed, is enough: until then, what is brought in is in the agent's file.
  const options = { durability: "process", ...redaction(config) } as const;
  const opened = await openBoth(await addressOf(config), "holdfast", config, options);
  return { ...opened, keepsFiles: !config.redact };
}

/**
 * Brings a session into the store, with those of its sub-agents; what is there already is not written again. `run`: one
 * door for all that are imported. `brought`: what the process has brought in so far, if it comes back for more.
 */
export async function importSession(
  { store, keepsFiles }: Pick<ImportTarget, "store" | "keepsFiles">,
  found: FoundSession,
  run: Door,
  brought: Map<string, string> | null = null,
): Promise<Imported> {
  using door = run.inner();
  const { agent, session } = found;
  const readable: ReadableSession = await readConversations(agent, session, door);
  const [main, ...asides] = readable.conversations;
  const id = importedId(agent.name, session.id);
  const labels = { imported: agent.name, "imported-session": session.id };
  const title = readable.title === null ? {} : { title: readable.title };
  const cwd = session.folder !== undefined && isAbsolute(session.folder) ? { cwd: session.folder } : {};
  let added = await bring(store, id, main?.messages ?? [], brought, { app: agent.name, labels, ...title, ...cwd });
  const agents: string[] = [];
  for (const { thread, call, messages } of asides) {
    const own = importedId(agent.name, session.id, thread);
    const parent = { session: id, ...(call !== null && { call }) };
    added += await bring(store, own, messages, brought, { app: agent.name, labels, parent, ...cwd });
    agents.push(own);
  }
  const messages = readable.conversations.reduce((sum, each) => sum + each.messages.length, 0);
  const originals = keepsFiles ? makeKeptFolder(store.url, agent.name, session.id) : null;
  if (originals !== null) await keepSession(agent, session, originals, door);
  const { leftOut, conversations } = readable;
  const facts = { agent: agent.name, from: session.path, title: readable.title };
  return { id, ...facts, added, messages, agents, originals, leftOut, conversations };
}

async function bring(
  store: Store,
  id: string,
  messages: Conversation["messages"],
  brought: Map<string, string> | null,
  options: Partial<Parameters<Store["create"]>[0]> & { readonly app: string },
): Promise<number> {
  const hash = brought && createHash("sha256").update(JSON.stringify(messages)).digest("base64");
  if (hash !== null && brought?.get(id) === hash) return 0;
  const isThere = await store.has(id);
  // Of what has no word yet, a watch makes no session.
  if (brought !== null && messages.length === 0 && !isThere) return 0;
  await using session: Session<AnthropicMessage> = isThere
    ? await store.resume(id, { app: "holdfast import", dialect: "anthropic" })
    : ((await store.create({ ...options, id, dialect: "anthropic" })) as Session<AnthropicMessage>);
  const before = session.messages.length;
  // An agent that lost everything takes nothing from what was kept. Nor does one take back what went on without it.
  const isElsewhere = session.attributes.app !== undefined && session.attributes.app !== options.app;
  if (!isElsewhere && (messages.length > 0 || before === 0))
    await session.sync(messages.flatMap(piecesOf), { rewrite: "epoch" });
  if (hash !== null) brought?.set(id, hash);
  return Math.max(0, session.messages.length - before);
}

/** A message for each block: as a session grows, its last message does, and one that was changed needs a new epoch. */
function piecesOf({ role, content }: ConversationMessage): AnthropicMessage[] {
  if (typeof content === "string") return [{ role, content }];
  return content.map((block) => ({ role, content: [block] }) as AnthropicMessage);
}
