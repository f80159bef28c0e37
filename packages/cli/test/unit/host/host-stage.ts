import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ModelMessage } from "ai";
import type { MockLanguageModelV4 } from "ai/test";
import { openStore, type Store } from "holdfast";
import { type Step, scripted } from "../../../../adapters/test/scripted-model.ts";
import type { Services } from "../../../src/agent/services.ts";
import type { Config } from "../../../src/config.ts";
import type { Chat, ChatEvent } from "../../../src/host/host.ts";
import { LocalChat } from "../../../src/host/local/local-chat.ts";
import { LocalHost } from "../../../src/host/local/local-host.ts";
import type { McpServers } from "../../../src/mcp/servers.ts";
import type { ResolvedModel } from "../../../src/models/resolve.ts";
import { APP } from "../../../src/store/app.ts";
import { ProjectRules } from "../../../src/trust/project-rules.ts";
import { Trust } from "../../../src/trust/trust.ts";

export { call, scripted, text } from "../../../../adapters/test/scripted-model.ts";

export const config: Config = {
  store: undefined,
  model: "offline",
  baseUrl: undefined,
  allow: [],
  ask: [],
  deny: [],
  stores: {},
  mcpServers: {},
  windowTokens: undefined,
  passEnv: [],
  redact: false,
  pager: undefined,
  offlineDelayMs: 0,
  debug: false,
};

/** A folder with a store and a place to work in, removed at the end of the scope. */
export class Stage implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-host-"));
  readonly work = mkdtempSync(join(tmpdir(), "holdfast-work-"));
  /** The rules of this user's projects. */
  readonly rules = join(mkdtempSync(join(tmpdir(), "holdfast-config-")), "rules.json");
  readonly #open: { close(): Promise<void> }[] = [];

  /** As a process would open it. */
  async host(asks: "person" | "nobody" = "nobody", settings: Partial<Config> = {}): Promise<LocalHost> {
    const host = new LocalHost(
      await openStore(this.folder, { app: APP, recordsToolStarts: true }),
      { ...config, ...settings },
      asks,
    );
    this.#open.push(host);
    return host;
  }

  store(): Promise<Store> {
    return openStore(this.folder, { app: APP, recordsToolStarts: true });
  }

  /** A chat with a model that answers by a script. */
  async chat(
    steps: readonly Step[],
    options: {
      asks?: "person" | "nobody";
      config?: Partial<Config>;
      windowTokens?: number;
      id?: string;
      servers?: McpServers;
      provider?: string;
    } = {},
  ): Promise<Chat & { readonly model: ReturnType<typeof scripted>; readonly store: Store }> {
    const store = await this.store();
    this.#open.push(store);
    const model = scripted(...steps);
    const resolved = { ...asResolved(model, options.windowTokens), provider: options.provider ?? "scripted" };
    const services: Services = {
      store,
      config: { ...config, ...options.config },
      asks: options.asks ?? "nobody",
      model: async () => resolved,
      outputs: () => join(this.folder, "outputs"),
      ending: new AbortController().signal,
      trust: new Trust(store.url),
      servers: options.servers ?? null,
      rules: new ProjectRules(this.rules),
    };
    const session = options.id
      ? await store.resume<ModelMessage>(options.id, { app: APP })
      : await store.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd: this.work });
    // As `LocalHost` does for a session that was begun here.
    services.trust.of(session.id).workIn(this.work);
    const chat = new LocalChat(session, resolved, services, () => {});
    await chat.restore();
    return Object.assign(chat, { model, store });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#open.reverse()) await one.close();
    for (const path of [this.folder, this.work, dirname(this.rules)]) rmSync(path, { recursive: true, force: true });
  }
}

export function asResolved(model: MockLanguageModelV4, windowTokens = 100_000): ResolvedModel {
  return { name: "scripted/scripted-1", provider: "scripted", model, windowTokens };
}

/** Every event from now on, and the way to wait for one. */
export function heard(chat: Chat): {
  readonly events: ChatEvent[];
  until<T extends ChatEvent["type"]>(type: T): Promise<ChatEvent & { type: T }>;
} {
  const events: ChatEvent[] = [];
  const waiting = new Set<{ type: string; resolve: (event: never) => void }>();
  chat.subscribe((event) => {
    events.push(event);
    for (const one of waiting) {
      if (one.type !== event.type) continue;
      waiting.delete(one);
      one.resolve(event as never);
    }
  });
  return {
    events,
    until: (type) => new Promise((resolve) => void waiting.add({ type, resolve })),
  };
}
