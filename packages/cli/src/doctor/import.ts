import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import {
  type Conversation,
  Door,
  type FoundSession,
  keepSession,
  type ReadableSession,
  readConversations,
} from "@holdfast/doctor";
import { type DialectName, HoldfastError, type Session, type Store } from "holdfast";
import { type Flags, loadConfig } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { recordedIn } from "../export/dialects/to-dialect.ts";
import { addressOf, type OpenedStore, openBoth, redaction } from "../store/open.ts";
import { typedCommand } from "../typed-command.ts";
import { findSessions, sessionWithId } from "./examine.ts";
import { importedId, makeKeptFolder } from "./kept-folder.ts";

/** Sessions of other agents, brought into Holdfast. */

export interface Imported {
  readonly id: string;
  readonly agent: string;
  readonly from: string;
  readonly dialect: string;
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

export interface ImportOptions {
  /** Of a new session; one that is there already keeps its own. */
  readonly dialect?: DialectName | undefined;
  /** Another session than the one that earlier imports made: the nth. */
  readonly copy?: string | undefined;
  /** It goes on to another agent: what this dialect has no form for does not matter. */
  readonly isPassing?: boolean;
  /** What the process has brought in so far, if it comes back for more: by session, a hash of it. */
  readonly watched?: Map<string, string>;
}

/** What Holdfast's own agent and the adapter of the AI SDK resume. It takes reasoning without signatures, too. */
const DIALECT: DialectName = "ai-sdk";
const REASONING: ReadonlySet<string> = new Set<DialectName>(["ai-sdk", "acp"]);
/** The note in which an import says what it brought. */
const NOTE = "import";

/**
 * Brings a session into the store, with those of its sub-agents; what is there already is not written again. `run`: one
 * door for all that are imported.
 */
export async function importSession(
  { store, keepsFiles }: Pick<ImportTarget, "store" | "keepsFiles">,
  found: FoundSession,
  run: Door,
  options: ImportOptions = {},
): Promise<Imported> {
  using door = run.inner();
  const { copy, isPassing = false } = options;
  const { agent, session } = found;
  const readable: ReadableSession = await readConversations(agent, session, door);
  const [main, ...asides] = readable.conversations;
  const named = copy === undefined ? session.id : `${session.id} ${copy}`;
  const id = importedId(agent.name, named);
  const labels = { imported: agent.name, "imported-session": session.id };
  const title = readable.title === null ? {} : { title: readable.title };
  const cwd = session.folder !== undefined && isAbsolute(session.folder) ? { cwd: session.folder } : {};
  const known = { app: agent.name, labels, ...cwd };
  const brought = [await bring(store, id, main?.messages ?? [], options, { ...known, ...title })];
  const agents: string[] = [];
  for (const { thread, call, messages } of asides) {
    const own = importedId(agent.name, named, thread);
    const parent = { session: id, ...(call !== null && { call }) };
    brought.push(await bring(store, own, messages, options, { ...known, parent }));
    agents.push(own);
  }
  const [{ dialect }] = brought as [Brought];
  const originals = keepsFiles ? makeKeptFolder(store.url, agent.name, session.id) : null;
  if (originals !== null) await keepSession(agent, session, originals, door);
  const { conversations } = readable;
  const leftOut = [...readable.leftOut, ...(isPassing ? [] : reasoningLeftOut(conversations, dialect))];
  const sum = (key: "added" | "messages"): number => brought.reduce((total, each) => total + each[key], 0);
  const counts = { added: sum("added"), messages: sum("messages") };
  const facts = { agent: agent.name, from: session.path, dialect, title: readable.title };
  return { id, ...facts, ...counts, agents, originals, leftOut, conversations };
}

function reasoningLeftOut(conversations: readonly Conversation[], dialect: string): string[] {
  const blocks = conversations.flatMap(({ messages }) =>
    messages.flatMap(({ content }) => (typeof content === "string" ? [] : content)),
  );
  const count = blocks.filter(({ type }) => type === "thinking").length;
  if (count === 0) return [];
  const words = `${count} ${count === 1 ? "piece" : "pieces"} of reasoning`;
  return REASONING.has(dialect)
    ? [`the signatures of ${words}, kept as text`]
    : [`${words}: this dialect takes none without a signature, which holds for the agent's own requests`];
}

interface Brought {
  readonly dialect: string;
  readonly messages: number;
  readonly added: number;
}

async function bring(
  store: Store,
  id: string,
  messages: Conversation["messages"],
  { dialect: wanted, watched }: ImportOptions,
  attributes: Partial<Parameters<Store["create"]>[0]> & { readonly app: string },
): Promise<Brought> {
  const hash = createHash("sha256").update(JSON.stringify(messages)).digest("hex");
  const nothing = { dialect: wanted ?? DIALECT, messages: 0, added: 0 };
  if (watched?.get(id) === hash) return nothing;
  const isThere = await store.has(id);
  // Of what has no word yet, a watch makes no session.
  if (watched && messages.length === 0 && !isThere) return nothing;
  await using session = isThere
    ? await store.resume(id, { app: "holdfast import" })
    : await store.create({ ...attributes, id, dialect: wanted ?? DIALECT });
  const { dialect, notes, app } = session.attributes;
  if (wanted !== undefined && wanted !== dialect) {
    const message = `Session ${id} was imported in the dialect "${dialect}" before. Nothing was changed. To import it in another one too, pass --copy with a name.`;
    throw new CommandError(EXIT.usage, "DIALECT_FIXED", message);
  }
  const { messages: given, interruptions } = recordedIn(messages, "anthropic", dialect as DialectName);
  const brought = (added: number): Brought => {
    watched?.set(id, hash);
    return { dialect, messages: given.length, added };
  };
  const before = notes[NOTE] as
    | { readonly source: string; readonly given: number; readonly entries: number | null }
    | undefined;
  // An agent that lost everything takes nothing from what was kept.
  if (before?.source === hash || (given.length === 0 && session.entries.length > 0)) return brought(0);
  // What was said in Holdfast since would be replaced by what the agent said meanwhile.
  const isContinued =
    (app !== undefined && app !== attributes.app) ||
    (before !== undefined && before.entries !== null && before.entries !== session.entries.length);
  const known = before?.given ?? 0;
  const ends = [...interruptions, given.length];
  const steps = (from: number) => ends.filter((end) => end > from).map((end) => given.slice(0, end));
  let isRewritten = false;
  // An import that is killed before the note at the end has added entries too: nobody continued the session.
  if (watched && before && !isContinued) await session.note(NOTE, { ...before, entries: null });
  try {
    await syncAll(session, steps(known), "error");
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "SYNC_REWRITE") throw error;
    if (isContinued && watched) return brought(0);
    if (isContinued) throw continued(id);
    await syncAll(session, steps(0), "epoch");
    isRewritten = true;
  }
  await session.note(NOTE, { source: hash, given: given.length, entries: session.entries.length });
  return brought(Math.max(isRewritten ? 1 : 0, given.length - known));
}

/** A turn that was interrupted ends before the prompt that follows it: the model is then told of its open calls. */
async function syncAll(
  session: Session<unknown>,
  arrays: readonly (readonly unknown[])[],
  rewrite: "epoch" | "error",
): Promise<void> {
  for (const [index, array] of arrays.entries()) {
    await session.sync(array, { rewrite: index === 0 ? rewrite : "error" });
    if (index < arrays.length - 1) await session.turn?.abort({ by: "close" });
  }
}

function continued(id: string): CommandError {
  const message = `Session ${id} was continued in Holdfast after its import, and in the agent too. Nothing was changed. To import the agent's as another session, pass --copy with a name. "${typedCommand(`show ${id}`)}" shows what was said in Holdfast.`;
  return new CommandError(EXIT.usage, "SESSION_CONTINUED", message);
}
