import { appendFileSync, closeSync, copyFileSync, existsSync, mkdirSync, openSync } from "node:fs";
import { basename, isAbsolute, join, resolve } from "node:path";
import { type Conversation, Door, type FoundSession, type ReadableSession, readConversations } from "@holdfast/doctor";
import { type AnthropicMessage, idFrom, type Session, type Store } from "holdfast";
import { type Flags, loadConfig } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { addressOf, type OpenedStore, openBoth, redaction } from "../store/open.ts";
import { sessionOutputs } from "../store/output-folders.ts";
import { findSessions, sessionWithId } from "./examine.ts";

/** Sessions of other agents, brought into Holdfast. */

export interface Imported {
  readonly id: string;
  readonly agent: string;
  readonly from: string;
  /** Messages that were not there yet. */
  readonly added: number;
  readonly messages: number;
  readonly agents: readonly string[];
  /** Where the agent's files, or its rows of a database, were copied to; null if the store has no place for them. */
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

/** The configured store; it is created if there is none yet. */
export async function openTarget(flags: Flags): Promise<OpenedStore> {
  const config = loadConfig(flags);
  return await openBoth(await addressOf(config), "holdfast", config, redaction(config));
}

/**
 * Brings a session into the store, with those of its sub-agents; what is there already is not written again. `run`: one
 * door for all that are imported.
 */
export async function importSession(store: Store, found: FoundSession, run: Door): Promise<Imported> {
  using door = run.inner();
  const { agent, session } = found;
  const readable: ReadableSession = await readConversations(agent, session, door);
  const [main, ...asides] = readable.conversations;
  const id = idFrom(`holdfast import ${agent.name} ${session.id}`);
  const labels = { imported: agent.name, "imported-session": session.id };
  const title = readable.title === null ? {} : { title: readable.title };
  const cwd = session.folder !== undefined && isAbsolute(session.folder) ? { cwd: session.folder } : {};
  let added = await bring(store, id, main?.messages ?? [], { labels, ...title, ...cwd });
  const agents: string[] = [];
  for (const { thread, call, messages } of asides) {
    const own = idFrom(`holdfast import ${agent.name} ${session.id} ${thread}`);
    const parent = { session: id, ...(call !== null && { call }) };
    added += await bring(store, own, messages, { labels, parent, ...cwd });
    agents.push(own);
  }
  const messages = readable.conversations.reduce((sum, each) => sum + each.messages.length, 0);
  const originals = await keepOriginals(sessionOutputs(store.url, id), found, door);
  const { leftOut, conversations } = readable;
  const facts = { agent: agent.name, from: session.path, title: readable.title };
  return { id, ...facts, added, messages, agents, originals, leftOut, conversations };
}

async function bring(
  store: Store,
  id: string,
  messages: Conversation["messages"],
  options: Partial<Parameters<Store["create"]>[0]>,
): Promise<number> {
  const given = messages as readonly AnthropicMessage[];
  await using session: Session<AnthropicMessage> = (await store.has(id))
    ? await store.resume(id, { dialect: "anthropic" })
    : ((await store.create({ ...options, id, dialect: "anthropic" })) as Session<AnthropicMessage>);
  const { appended } = await session.sync(given, { rewrite: "epoch" });
  return appended.length;
}

/** Copies the agent's files beside the store: what no message can hold is in them. */
async function keepOriginals(outputs: string | null, { agent, session }: FoundSession, door: Door) {
  if (outputs === null) return null;
  const folder = join(outputs, "originals");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { path, parts, isShared } = session;
  // In a file that holds other sessions too, and perhaps the agent's passwords, only its own records count.
  if (isShared) {
    const file = openSync(join(folder, `0-${basename(path)}.jsonl`), "w", 0o600);
    try {
      for (const item of await agent.read(session, door))
        if (item.type === "record" && item.record.bytes.length > 0)
          appendFileSync(file, Buffer.concat([item.record.bytes, Buffer.from("\n")]));
    } finally {
      closeSync(file);
    }
  } else copyFileSync(path, join(folder, `0-${basename(path)}`));
  for (const [index, part] of parts.entries()) copyFileSync(part, join(folder, `${index + 1}-${basename(part)}`));
  return folder;
}
