import type { ListQuery, Summary } from "holdfast";
import type { Chat, ChatOptions, ChatState, ForkChat, Host, NewChat, UnfinishedSession } from "../contract/host.ts";
import type { Item } from "../contract/item.ts";
import type { CallOutput, HoldfastClient } from "./client.ts";
import { RemoteChat } from "./remote-chat.ts";

const PEEK_ITEMS = 40;
const SEARCH_HITS_MAX = 1000;

/** Agents in a server, for the same screens that show agents in this process. Closing it leaves their turns running. */
export class RemoteHost implements Host {
  readonly client: HoldfastClient;
  readonly store: string;
  readonly warnings: readonly string[];
  readonly #chats = new Map<string, Promise<RemoteChat>>();

  private constructor(client: HoldfastClient, { store, warnings }: CallOutput<"getServer">) {
    this.client = client;
    this.store = store ?? client.url;
    this.warnings = warnings;
  }

  /** Throws ServerError: SERVER_UNREACHABLE, TOKEN_MISSING. */
  static async connect(client: HoldfastClient): Promise<RemoteHost> {
    return new RemoteHost(client, await client.call("getServer"));
  }

  async list(query: ListQuery = {}): Promise<{ readonly sessions: readonly Summary[]; readonly next?: string }> {
    const { labels, ...rest } = query;
    const label = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`);
    const asked = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, value && String(value)]));
    const page = await this.client.call("listSessions", {
      query: { ...(asked as object), ...(label.length > 0 ? { label } : {}) },
    });
    return page as { sessions: Summary[]; next?: string };
  }

  async *search(text: string): AsyncGenerator<{ readonly session: string; readonly excerpt: string }> {
    if (text.trim() === "") return;
    const { hits } = await this.client.call("searchSessions", { query: { q: text, limit: SEARCH_HITS_MAX } });
    yield* hits;
  }

  async peek(id: string): Promise<readonly Item[]> {
    const { items } = await this.client.call("getTranscript", { params: { id }, query: { last: PEEK_ITEMS } });
    return items as Item[];
  }

  async prompts(cwd: string, except: string): Promise<readonly string[]> {
    return (await this.client.call("getPrompts", { query: { cwd, except } })).prompts;
  }

  async create({ cwd, model, title, labels, keep, finishAfterRestart }: NewChat): Promise<Chat> {
    const body = {
      ...{ cwd, keep: keep === true },
      ...(model === undefined ? {} : { model }),
      ...(title === undefined ? {} : { title }),
      ...(labels === undefined ? {} : { labels }),
      ...(finishAfterRestart === undefined ? {} : { finishAfterRestart }),
    };
    return this.#attach(await this.client.call("createSession", { body }));
  }

  async open(id: string, { model, takeOver = false }: ChatOptions = {}): Promise<Chat> {
    const known = this.#chats.get(id);
    if (known) return known;
    const body = { ...(model === undefined ? {} : { model }), ...(takeOver ? { takeOver } : {}) };
    return this.#attach(await this.client.call("openSession", { params: { id }, body }));
  }

  async latest(cwd: string, { model }: ChatOptions = {}): Promise<Chat | null> {
    const body = { cwd, ...(model === undefined ? {} : { model }) };
    const { session } = await this.client.call("openLatest", { body });
    return session && this.#attach(session);
  }

  async unfinished(cwd: string): Promise<UnfinishedSession | null> {
    const { session } = await this.client.call("getUnfinished", { query: { cwd } });
    return session as UnfinishedSession | null;
  }

  async fork(id: string, body: ForkChat = {}): Promise<Chat> {
    return this.#attach(await this.client.call("forkSession", { params: { id }, body }));
  }

  /** Ends the connections alone. */
  async close(): Promise<void> {
    const chats = await Promise.allSettled(this.#chats.values());
    await Promise.all(chats.map((chat) => (chat.status === "fulfilled" ? chat.value.close() : undefined)));
  }

  #attach({ id, state }: CallOutput<"getSession">): Promise<RemoteChat> {
    const known = this.#chats.get(id);
    if (known) return known;
    const chat = RemoteChat.attach(this.client, state as unknown as Omit<ChatState, "items">, () =>
      this.#chats.delete(id),
    );
    this.#chats.set(id, chat);
    chat.catch(() => this.#chats.delete(id));
    return chat;
  }
}
