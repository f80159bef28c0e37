import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { frameworkDialects } from "@holdfast/adapters/dialects";
import type { EditorOffer } from "@holdfast/server/contract";
import type { ModelMessage } from "ai";
import { guard, type ListQuery, openStore, type SearchHit, type Session, type Store, type Summary } from "holdfast";
import { foreignInstructions } from "../../agent/instructions.ts";
import type { Services } from "../../agent/services.ts";
import { type Config, rulesPath } from "../../config.ts";
import { defined } from "../../defined.ts";
import { factsElsewhere } from "../../evidence/facts-elsewhere.ts";
import { CommandError, EXIT } from "../../exit.ts";
import type { McpServers } from "../../mcp/servers.ts";
import type { Servers } from "../../mcp-settings/server-settings.ts";
import { serverOfRule } from "../../mcp-settings/tool-names.ts";
import { type ResolvedModel, resolveModel } from "../../models/resolve.ts";
import { accountElsewhere, accountOnOpening } from "../../store/account.ts";
import { APP } from "../../store/app.ts";
import { newestHere, unfinishedHere } from "../../store/latest-here.ts";
import { addressOf, redaction } from "../../store/open.ts";
import { sessionOutputs } from "../../store/output-folders.ts";
import { titleForFork } from "../../store/session-id.ts";
import { loadStorePackage } from "../../store/store-package.ts";
import { nullIfUnreadable } from "../../store/usage.ts";
import { commandEnvironment } from "../../tools/shell/environment.ts";
import { endProcesses } from "../../tools/shell/surviving-commands.ts";
import type { Item } from "../../transcript/item.ts";
import { itemsOf } from "../../transcript/items.ts";
import { ProjectRules } from "../../trust/project-rules.ts";
import { type SessionTrust, Trust } from "../../trust/trust.ts";
import { folderFor } from "../../trust/work-folder.ts";
import { typedCommand } from "../../typed-command.ts";
import { version } from "../../version.ts";
import type { Chat, ChatOptions, ForkChat, Host, NewChat, UnfinishedSession } from "../host.ts";
import { describeInterruption, messageText } from "./chat-state.ts";
import { checkedRules } from "./checked-rules.ts";
import { EditorOffers } from "./editor-offers.ts";
import { type ChatFacts, LocalChat } from "./local-chat.ts";

/** The number of newest items in a preview. */
const PEEK_ITEMS = 40;
/** How far back the history of a folder goes. */
const HISTORY_SESSIONS = 30;
const HISTORY_PROMPTS = 500;

export interface LocalHostOptions {
  readonly config: Config;
  /** Who decides on a call that no rule allows: a person, asked through `Chat`, or nobody, and it is denied. */
  readonly asks: "person" | "nobody";
  /** The caller ends the process on SIGTERM and SIGHUP, and closes the host first. */
  readonly handlesSignals?: boolean;
  /** An editor may offer more MCP servers, so a rule for an unknown one is no mistake. */
  readonly offersServers?: boolean;
}

/** Opens the store and runs the agent in this process. */
export async function openLocalHost({
  config,
  asks,
  handlesSignals = false,
  offersServers = false,
}: LocalHostOptions): Promise<LocalHost> {
  checkedRules(config);
  // The SDK would print these in the middle of an answer; they are for debugging.
  if (!config.debug) globalThis.AI_SDK_LOG_WARNINGS = false;
  const options = { app: APP, dialects: frameworkDialects, ...redaction(config), recordsToolStarts: true };
  const address = await addressOf(config);
  await loadStorePackage(address, config);
  const store = await openStore(address, options);
  return new LocalHost(store, config, asks, await startServers(config), handlesSignals, offersServers);
}

/** Loads the SDK only if the user has servers: that takes longer than everything else. They start in the background. */
export async function startServers(config: Config): Promise<McpServers | null> {
  if (!Object.values(config.mcpServers).some(({ enabled }) => enabled)) return null;
  return loadServers(config, config.mcpServers, process.env);
}

async function loadServers(
  { passEnv }: Config,
  servers: Servers,
  variables: NodeJS.ProcessEnv | null,
): Promise<McpServers> {
  const { McpServers } = await import("../../mcp/servers.ts");
  return new McpServers(servers, { version, env: commandEnvironment(process.env, passEnv), variables });
}

/** A rule for a server that is not configured may be a typo, and a denying rule would then not deny. */
function warnUnknownServers({ allow, ask, deny, mcpServers }: Config): string[] {
  return [...allow, ...ask, ...deny].flatMap((rule) => {
    const server = serverOfRule(rule.trim());
    if (server === null || server === "*" || Object.hasOwn(mcpServers, server)) return [];
    return [`The rule ${rule} applies to nothing: no MCP server is named "${server}".`];
  });
}

interface OpenedChat extends ChatFacts {
  readonly model: ResolvedModel;
}

export class LocalHost implements Host {
  readonly #store: Store;
  readonly #services: Services;
  readonly #offers: EditorOffers;
  readonly #chats = new Map<string, Promise<LocalChat>>();
  readonly #unguard: () => void;
  /** Sessions that `latest` could not open, and why. */
  readonly #passedOver: string[] = [];
  /** Messages about instruction files that are ignored. */
  readonly #notFollowed = new Set<string>();
  readonly #unknownServers: readonly string[];

  constructor(
    store: Store,
    config: Config,
    asks: "person" | "nobody",
    servers: McpServers | null = null,
    isLeftSignals = false,
    offersServers = false,
  ) {
    const ending = new AbortController();
    this.#store = store;
    this.#unknownServers = offersServers ? [] : warnUnknownServers(config);
    this.#offers = new EditorOffers(config, (offered) => loadServers(config, offered, null));
    this.#services = {
      store,
      config,
      asks,
      model: (name) =>
        resolveModel(name, {
          env: process.env,
          offlineDelayMs: config.offlineDelayMs,
          ...defined({ baseUrl: config.baseUrl, windowTokens: config.windowTokens }),
        }),
      ending: ending.signal,
      outputs: outputsIn(store.url),
      trust: new Trust(store.url),
      servers,
      editor: (session) => this.#offers.of(session),
      rules: new ProjectRules(rulesPath()),
    };
    // On SIGTERM and SIGHUP: record it, end the tools' processes, then end by that signal, as the parent expects (C6).
    const signals = isLeftSignals ? [] : (["SIGTERM", "SIGHUP"] as const);
    const unguard = isLeftSignals ? guard(store, { signals: [] }) : guard(store);
    const undo = signals.map((signal) => {
      let isEnding = false;
      const listener = (): void => {
        // Keep the listener: a closing terminal sends SIGHUP twice, and the second would end us before our tools.
        if (isEnding) return;
        isEnding = true;
        ending.abort(new DOMException(signal, "AbortError"));
        // A database cannot record it synchronously.
        void Promise.allSettled([endProcesses(), servers?.close(), this.#offers.close(), unguard.written()]).then(
          () => {
            process.off(signal, listener);
            unguard();
            process.kill(process.pid, signal);
          },
        );
      };
      process.on(signal, listener);
      return () => process.off(signal, listener);
    });
    this.#unguard = () => {
      for (const one of undo) one();
      unguard();
    };
  }

  get store(): string {
    return this.#store.url;
  }

  /** For commands that run in this process. */
  get sessions(): Store {
    return this.#store;
  }

  /** What this user has said about a session. */
  trustOf(id: string): SessionTrust {
    return this.#services.trust.of(id);
  }

  /**
   * Lets the agent of a session use what its editor offers, from the next turn on and until the session is closed. Call
   * it before `open`, which may finish a turn.
   */
  acceptOffer(id: string, offer: EditorOffer): Promise<void> {
    return this.#offers.accept(id, offer);
  }

  /** For a session that could not be opened. */
  dropOffer(id: string): Promise<void> {
    return this.#offers.drop(id);
  }

  get warnings(): readonly string[] {
    const { trust } = this.#services;
    const own = [...this.#passedOver, ...this.#notFollowed, ...this.#unknownServers];
    return [...this.#store.warnings, ...own, ...trust.warnings];
  }

  list(query?: ListQuery): Promise<{ sessions: readonly Summary[]; next?: string }> {
    return this.#store.list(query);
  }

  search(text: string): AsyncIterable<SearchHit> {
    // The picker shows what there is while a large store is indexed for the first time.
    return this.#store.search(text, { limit: Number.MAX_SAFE_INTEGER }, { partial: true });
  }

  async peek(id: string): Promise<readonly Item[]> {
    return itemsOf(await this.#store.read(id)).slice(-PEEK_ITEMS);
  }

  async prompts(cwd: string, except: string): Promise<readonly string[]> {
    const { sessions } = await this.#store.list({ cwd, limit: HISTORY_SESSIONS });
    const prompts: string[] = [];
    for (const { id } of sessions) {
      if (id === except || prompts.length >= HISTORY_PROMPTS) continue;
      const items = await this.#store.read(id).then(itemsOf, () => []);
      // Latest first: turned around below.
      prompts.push(...items.flatMap((item) => (item.kind === "prompt" ? [item.text] : [])).reverse());
    }
    return prompts.slice(0, HISTORY_PROMPTS).reverse();
  }

  async create({ cwd, title, labels, model: name, keep }: NewChat): Promise<Chat> {
    // Resolve the model first: do not create a session that no model can work in.
    const model = await this.#services.model(name ?? this.#services.config.model);
    const session = await this.#store.create<ModelMessage>({
      dialect: "ai-sdk",
      app: APP,
      cwd,
      ...defined({ title, labels }),
    });
    this.#services.trust.of(session.id).workIn(cwd);
    return this.#keep(session, () => ({ model, isNew: keep !== true }));
  }

  open(id: string, options: ChatOptions = {}): Promise<Chat> {
    const open = this.#chats.get(id);
    if (open) return open;
    const opening = this.#store
      .resume<ModelMessage>(id, { app: APP })
      .then((session) => this.#opened(session, options));
    this.#remember(id, opening);
    return opening;
  }

  async latest(cwd: string, options: ChatOptions = {}): Promise<Chat | null> {
    const session = await this.#store.resumeLatest<ModelMessage>(
      { cwd, app: APP },
      {
        ...{ app: APP },
        onPassedOver: (id, { message }) => this.#passedOver.push(`Session ${id} was skipped: ${message}`),
      },
    );
    const newest = await newestHere(this.#store, { cwd, app: APP });
    if (newest !== null && newest.id !== session?.id && (await this.#isOpen(newest.id))) {
      await session?.close();
      // Throws with the name of its holder.
      return this.open(newest.id, options);
    }
    return session && this.#opened(session, { ...options, cwd });
  }

  async #isOpen(id: string): Promise<boolean> {
    const reading = await nullIfUnreadable(this.#store.read(id));
    return reading !== null && reading.holder !== null;
  }

  async unfinished(cwd: string): Promise<UnfinishedSession | null> {
    const found = await nullIfUnreadable(unfinishedHere<ModelMessage>(this.#store, { cwd, app: APP }));
    if (!found) return null;
    const { session, reading } = found;
    const { interruption } = reading;
    const account = accountElsewhere(reading, await factsElsewhere(this.#store.url, reading, this.#services.trust));
    const shown = interruption && describeInterruption(interruption, account);
    const queue = reading.queue.map(({ prompt }) => messageText(prompt));
    return { id: session.id, title: session.title, cwd, account, at: session.at, queue, interruption: shown };
  }

  async fork(id: string, { at, cwd }: ForkChat = {}): Promise<Chat> {
    // The list may fail because of another session; fork this one anyway.
    const named = await nullIfUnreadable(titleForFork(this.#store, id));
    const session = await this.#store.fork<ModelMessage>(id, {
      app: APP,
      ...named,
      ...defined({ at, cwd }),
    });
    // Permissions stay with the source. The user works where they said, or in the same folder.
    const folder = cwd ?? this.#services.trust.of(id).folder;
    if (folder !== null) this.#services.trust.of(session.id).workIn(folder);
    return this.#opened(session, {});
  }

  /** Closes a chat, and lets the next process continue its turn. */
  async handOver(id: string, withinMs: number, hurry?: AbortSignal): Promise<void> {
    await (await this.#chats.get(id))?.handOver(withinMs, hurry);
  }

  async close(): Promise<void> {
    try {
      await Promise.all([...this.#chats.values()].map(async (chat) => (await chat).close()));
    } finally {
      await this.#services.servers?.close();
      await this.#offers.close();
      await endProcesses();
      this.#unguard();
      await this.#store.close();
    }
  }

  async #opened(
    session: Session<ModelMessage>,
    { model: wanted, here = false, cwd: now = process.cwd(), takeOver = false }: ChatOptions,
  ): Promise<LocalChat> {
    return this.#keep(session, async () => {
      const { notes, dialect, app, labels } = session.attributes;
      if (dialect !== "ai-sdk") {
        const message = `Session ${session.id} holds messages in the dialect "${dialect}"${app ? `, written by ${app}` : ""}, which this agent cannot continue. Nothing was touched. Read it with "${typedCommand(`show ${session.id}`)}", or convert it with "${typedCommand(`export ${session.id}`)}".`;
        throw new CommandError(EXIT.store, "DIALECT_UNKNOWN", message);
      }
      const { prompt } = accountOnOpening(session).can;
      // An import is a copy of our own: the other agent goes on with its own session.
      const isImport = app !== undefined && labels["imported"] === app;
      if (prompt !== true && !takeOver && !isImport) {
        const message = `Session ${session.id} is another program's. ${prompt.words} Nothing was touched. To continue it with this agent all the same, pass --take-over; "${typedCommand(`fork ${session.id}`)}" continues in a copy.`;
        throw new CommandError(EXIT.usage, "SESSION_FOREIGN", message);
      }
      const trust = this.#services.trust.of(session.id);
      const known = trust.folder;
      const { cwd: journal } = session.attributes;
      const folder = folderFor({ session: session.id, journal, known, now, isHere: here });
      // The model decides who receives this user's files: follow the journal only if this user has worked with the
      // session here.
      const last = typeof notes["model"] === "string" ? notes["model"] : null;
      const model = await this.#services.model(wanted ?? (known === null ? null : last) ?? this.#services.config.model);
      trust.workIn(folder);
      const isForeign = known === null && wanted === undefined && last !== null && last !== model.name;
      return { model, foreignModel: isForeign ? last : null };
    });
  }

  #keep(session: Session<ModelMessage>, look: () => OpenedChat | Promise<OpenedChat>): Promise<LocalChat> {
    const { id } = session;
    const kept = (async () => {
      try {
        const { model, ...facts } = await look();
        const chat = new LocalChat(session, model, this.#services, () => this.#closed(id), facts);
        if (session.attributes.notes["model"] !== model.name) await session.note("model", model.name);
        await chat.restore();
        for (const words of await foreignInstructions(chat.state.cwd)) this.#notFollowed.add(words);
        return chat;
      } catch (error) {
        await session.close();
        throw error;
      }
    })();
    this.#remember(id, kept);
    return kept;
  }

  async #closed(id: string): Promise<void> {
    this.#chats.delete(id);
    await this.#offers.drop(id);
  }

  #remember(id: string, chat: Promise<LocalChat>): void {
    this.#chats.set(id, chat);
    chat.catch(() => {
      if (this.#chats.get(id) === chat) this.#chats.delete(id);
    });
  }
}

/** A store in memory keeps nothing, so its tool outputs go to a temporary folder. */
function outputsIn(url: string): (session: string) => string {
  let temporary: string | undefined;
  return (session) => {
    const own = sessionOutputs(url, session);
    if (own !== null) return own;
    temporary ??= mkdtempSync(join(tmpdir(), "holdfast-outputs-"));
    return temporary;
  };
}
