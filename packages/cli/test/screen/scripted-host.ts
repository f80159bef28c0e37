import type { Chat, ChatEvent, ChatState, Host, PromptImage } from "../../src/host/host.ts";
import { accountWith } from "../account.ts";

/** A chat whose state the test sets, and that writes down what it is told to do. */
export class ScriptedChat implements Chat {
  readonly id: string;
  readonly told: string[] = [];
  /** The next call fails with this. */
  failure: Error | null = null;
  state: ChatState;
  readonly #listeners = new Set<(event: ChatEvent) => void>();

  constructor(id: string, change: Partial<ChatState> = {}) {
    this.id = id;
    this.state = {
      ...{ id, title: "", cwd: "/tmp/x", model: "offline/offline", status: "idle", items: [], live: null, outputs: {} },
      ...{
        account: accountWith(),
        asks: [],
        queue: [],
        interruption: null,
        usage: {},
        window: { usedTokens: 0, maxTokens: 0 },
        failure: null,
      },
      ...{ damage: [], mode: "ask", canUndo: false, isCompacting: false, isBusy: false },
      ...change,
    };
  }

  become(change: Partial<ChatState>, event: ChatEvent = { type: "changed" }): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.#listeners) listener(event);
  }

  subscribe(listener: (event: ChatEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async prompt(text: string, images: readonly PromptImage[] = []): Promise<"started" | "queued"> {
    await this.#tell([`prompt ${text}`, ...images.map(({ name, mediaType }) => `${name} ${mediaType}`)].join(" + "));
    return "started";
  }

  leave(): void {
    this.told.push("leave");
    this.become({ interruption: null, status: "idle" });
  }

  async rewind(message: string): Promise<string> {
    await this.#tell(`rewind ${message}`);
    return "what was asked";
  }

  settled = (): Promise<void> => this.#tell("settled");
  withdraw = (queued: string): Promise<void> => this.#tell(`withdraw ${queued}`);
  finish = (options?: { readonly processes?: string }): Promise<void> =>
    this.#tell(`finish ${options?.processes ?? ""}`.trim());
  stop = (by?: string): Promise<void> => this.#tell(`stop ${by}`);
  resumeQueue = (): Promise<void> => this.#tell("resumeQueue");
  answer = (call: string, word: string, reason = ""): Promise<void> =>
    this.#tell(`answer ${call} ${word} ${reason}`.trim());
  setMode = (mode: ChatState["mode"]): void => {
    this.told.push(`mode ${mode}`);
    this.become({ mode });
  };
  setModel = (model: string): Promise<void> => this.#tell(`model ${model}`);
  compact = (): Promise<void> => this.#tell("compact");
  clear = (): Promise<void> => this.#tell("clear");
  undo = (): Promise<void> => this.#tell("undo");
  rename = (title: string): Promise<void> => this.#tell(`rename ${title}`);
  close = (): Promise<void> => this.#tell("close");

  async #tell(words: string): Promise<void> {
    this.told.push(words);
    const { failure } = this;
    this.failure = null;
    if (failure !== null) throw failure;
  }
}

/** A host that knows these chats. */
export function scriptedHost(...chats: ScriptedChat[]): Host {
  const open = async (id: string): Promise<Chat> => {
    const found = chats.find((chat) => chat.id === id);
    if (found === undefined) throw new Error(`there is no chat ${id}`);
    return found;
  };
  return {
    store: "memory:",
    warnings: [],
    list: async () => ({
      sessions: chats.map(({ id, state: { title, cwd } }) => ({
        ...{ id, title, cwd, at: "2026-11-15T10:00:00.000Z", turns: 1, queued: 0, status: "idle" as const },
      })),
    }),
    search: async function* () {},
    unfinished: async () => null,
    peek: async () => [],
    prompts: async () => ["asked before"],
    create: async () => chats[0]!,
    open,
    latest: async () => chats[0] ?? null,
    fork: open,
    close: async () => undefined,
  };
}
