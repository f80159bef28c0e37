import { isAbsolute } from "node:path";
import {
  type AgentConnection,
  type AgentContext,
  agent,
  type ClientCapabilities,
  type McpServer,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type Stream,
} from "@agentclientprotocol/sdk/unstable";
import type { Chat, EditorOffer, Host } from "@holdfast/server/contract";
import { errorKind, isHoldfastError } from "holdfast";
import { editorFiles, editorTerminals, offeredServers } from "./editor-tools.ts";
import { MODEL, modeCalled } from "./options.ts";
import { promptOf } from "./prompt.ts";
import { AcpSession } from "./session.ts";
import type { CallWords } from "./words.ts";

export interface AgentOptions {
  readonly host: Host;
  readonly version: string;
  readonly words: CallWords;
  /** The models that a person can choose from. */
  readonly models: readonly string[];
  /**
   * Lets the agent of a session use the editor's files, terminals and MCP servers. Null if the agent runs elsewhere: it
   * cannot reach them.
   */
  readonly editor: {
    /** Called before the session is opened, and again whenever the editor opens it. */
    readonly accept: (session: string, offer: EditorOffer) => Promise<void>;
    /** The session could not be opened. */
    readonly drop: (session: string) => Promise<void>;
  } | null;
  /** Moves a session to the trash. */
  readonly remove: (id: string) => Promise<void>;
  /** For the person who reads the editor's log. */
  readonly log: (line: string) => void;
}

const PAGE = 50;
const NOT_FOUND = -32002;

/** Serves the agent to an editor over `stream`, until the editor closes it. */
export function serveAgent(options: AgentOptions, stream: Stream): AgentConnection {
  return new AcpAgent(options).connect(stream);
}

class AcpAgent {
  readonly #options: AgentOptions;
  readonly #sessions = new Map<string, AcpSession>();
  #capabilities: ClientCapabilities = {};

  constructor(options: AgentOptions) {
    this.#options = options;
  }

  connect(stream: Stream): AgentConnection {
    const { host, version, remove } = this.#options;
    const { session } = methods.agent;
    return agent({ name: "holdfast" })
      .onRequest(methods.agent.initialize, ({ params }) => {
        this.#capabilities = params.clientCapabilities ?? {};
        return {
          protocolVersion: Math.min(params.protocolVersion, PROTOCOL_VERSION),
          agentInfo: { name: "holdfast", title: "Holdfast", version },
          agentCapabilities: {
            loadSession: true,
            promptCapabilities: { image: true, embeddedContext: true },
            mcpCapabilities: { http: this.#options.editor !== null, sse: false },
            sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, fork: {} },
          },
        };
      })
      .onRequest(session.new, ({ params, client }) =>
        this.#answering(async () => {
          const chat = await host.create({ cwd: folder(params.cwd) });
          return { sessionId: chat.id, ...(await this.#created(chat, client, params.mcpServers)).answer };
        }),
      )
      .onRequest(session.load, ({ params, client }) =>
        this.#answering(async () => {
          const opened = await this.#open(params.sessionId, params.cwd, client, params.mcpServers, (one) =>
            one.replay(),
          );
          return opened.answer;
        }),
      )
      .onRequest(session.resume, ({ params, client }) =>
        this.#answering(async () => {
          const opened = await this.#open(params.sessionId, params.cwd, client, params.mcpServers ?? null);
          return opened.answer;
        }),
      )
      .onRequest(session.fork, ({ params, client }) =>
        this.#answering(async () => {
          const chat = await host.fork(params.sessionId, { cwd: folder(params.cwd) });
          return { sessionId: chat.id, ...(await this.#created(chat, client, params.mcpServers ?? [])).answer };
        }),
      )
      .onRequest(session.list, ({ params }) =>
        this.#answering(async () => {
          const { cwd, cursor } = params;
          const { sessions, next } = await host.list({
            limit: PAGE,
            ...(cwd == null ? {} : { cwd }),
            ...(cursor == null ? {} : { after: cursor }),
          });
          return {
            // The protocol requires a folder: sessions without one cannot be opened from an editor.
            sessions: sessions.flatMap(({ id, cwd: place, title, at }) =>
              place === undefined
                ? []
                : [{ sessionId: id, cwd: place, title: title === "" ? null : title, updatedAt: at }],
            ),
            ...(next === undefined ? {} : { nextCursor: next }),
          };
        }),
      )
      .onRequest(session.close, ({ params }) =>
        this.#answering(async () => {
          await this.#close(params.sessionId);
          return {};
        }),
      )
      .onRequest(session.delete, ({ params }) =>
        this.#answering(async () => {
          await this.#close(params.sessionId);
          await remove(params.sessionId);
          return {};
        }),
      )
      .onRequest(session.setMode, ({ params }) =>
        this.#answering(async () => {
          const mode = modeCalled(params.modeId);
          if (mode === null) throw RequestError.invalidParams({ modeId: params.modeId }, "There is no such mode.");
          this.#of(params.sessionId).chat.setMode(mode);
          return {};
        }),
      )
      .onRequest(session.setConfigOption, ({ params }) =>
        this.#answering(async () => {
          const opened = this.#of(params.sessionId);
          if (params.configId !== MODEL || typeof params.value !== "string")
            throw RequestError.invalidParams({ configId: params.configId }, "There is no such option.");
          await opened.chat.setModel(params.value);
          return { configOptions: opened.answer.configOptions };
        }),
      )
      .onRequest(session.prompt, ({ params, signal }) =>
        this.#answering(async () => this.#of(params.sessionId).prompt(promptOf(params.prompt), signal)),
      )
      .onNotification(session.cancel, ({ params }) => this.#sessions.get(params.sessionId)?.stop())
      .connect(stream);
  }

  #of(id: string): AcpSession {
    const opened = this.#sessions.get(id);
    if (opened) return opened;
    throw new RequestError(NOT_FOUND, `Session ${id} is not open. Load it first.`, { sessionId: id });
  }

  async #open(
    id: string,
    cwd: string,
    client: AgentContext,
    servers: readonly McpServer[] | null,
    first: (opened: AcpSession) => Promise<void> = async () => undefined,
  ): Promise<AcpSession> {
    const { host, editor } = this.#options;
    const here = { cwd: folder(cwd) };
    const known = this.#sessions.get(id);
    // Before it is opened: that may continue a turn.
    // An editor that names no servers keeps those that the session has.
    const warnings = known && servers === null ? [] : await this.#offer(id, client, servers ?? []);
    try {
      const chat = await host.open(id, here);
      const opened = known ?? this.#keep(chat, client);
      await first(opened);
      if (!known) this.#begin(opened, warnings);
      return opened;
    } catch (error) {
      if (!this.#sessions.has(id)) await editor?.drop(id);
      throw error;
    }
  }

  /** A session that has just been created. Nothing happens in it before its first prompt. */
  async #created(chat: Chat, client: AgentContext, servers: readonly McpServer[]): Promise<AcpSession> {
    try {
      const warnings = await this.#offer(chat.id, client, servers);
      const opened = this.#keep(chat, client);
      this.#begin(opened, warnings);
      return opened;
    } catch (error) {
      await chat.close();
      throw error;
    }
  }

  /** Offers the editor's tools to the agent. Returns what the person should know. */
  async #offer(id: string, client: AgentContext, given: readonly McpServer[]): Promise<readonly string[]> {
    const { editor } = this.#options;
    if (!editor)
      return given.length === 0
        ? []
        : [
            `The editor's MCP servers (${given.map(({ name }) => name).join(", ")}) are not used, because the agent runs in a server. Add them to that server's configuration: holdfast mcp add`,
          ];
    const capabilities = this.#capabilities;
    const { servers, problems } = offeredServers(given);
    await editor.accept(id, {
      files: editorFiles(client, capabilities, id),
      terminals: editorTerminals(client, capabilities, id, (call, terminal) =>
        this.#sessions.get(id)?.embed(call, terminal),
      ),
      servers,
    });
    return problems;
  }

  #keep(chat: Chat, client: AgentContext): AcpSession {
    const { words, models } = this.#options;
    const opened = new AcpSession({ chat, client, capabilities: this.#capabilities, words, models });
    this.#sessions.set(chat.id, opened);
    return opened;
  }

  /** After the answer to the request that is being handled, which needs nothing more. */
  #begin(opened: AcpSession, warnings: readonly string[]): void {
    for (const warning of warnings) this.#options.log(warning);
    setImmediate(() => opened.begin(warnings));
  }

  async #close(id: string): Promise<void> {
    const opened = this.#sessions.get(id);
    this.#sessions.delete(id);
    await opened?.close();
  }

  /** Errors in words, with their code: the SDK would say "Internal error". */
  async #answering<T>(answer: () => Promise<T>): Promise<T> {
    try {
      return await answer();
    } catch (error) {
      throw asRequestError(error);
    }
  }
}

function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  if (!(error instanceof Error)) return RequestError.internalError();
  if (error instanceof TypeError) return new RequestError(-32602, error.message);
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  const data = code === undefined ? {} : { code };
  if (isHoldfastError(error, "SESSION_NOT_FOUND")) return new RequestError(NOT_FOUND, error.message, data);
  return new RequestError(errorKind(error) === "misuse" ? -32602 : -32603, error.message, data);
}

/** Editors must send absolute paths. */
function folder(cwd: string): string {
  if (isAbsolute(cwd)) return cwd;
  throw RequestError.invalidParams({ cwd }, "The working folder must be an absolute path.");
}
