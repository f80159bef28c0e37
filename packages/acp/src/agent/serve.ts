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
import type { Chat, Host } from "@holdfast/server/contract";
import { errorKind, isHoldfastError } from "holdfast";
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
            sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, fork: {} },
          },
        };
      })
      .onRequest(session.new, ({ params, client }) =>
        this.#answering(async () => {
          const chat = await host.create({ cwd: folder(params.cwd) });
          const opened = this.#keep(chat, client, params.mcpServers);
          return { sessionId: chat.id, ...opened.answer };
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
          const opened = await this.#open(params.sessionId, params.cwd, client, params.mcpServers ?? []);
          return opened.answer;
        }),
      )
      .onRequest(session.fork, ({ params, client }) =>
        this.#answering(async () => {
          const chat = await host.fork(params.sessionId);
          const opened = this.#keep(chat, client, params.mcpServers ?? []);
          return { sessionId: chat.id, ...opened.answer };
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
    servers: readonly McpServer[],
    first: (opened: AcpSession) => Promise<void> = async () => undefined,
  ): Promise<AcpSession> {
    const chat = await this.#options.host.open(id, { cwd: folder(cwd) });
    const known = this.#sessions.get(id);
    const opened = known ?? this.#keep(chat, client, servers);
    await first(opened);
    return opened;
  }

  #keep(chat: Chat, client: AgentContext, servers: readonly McpServer[]): AcpSession {
    const { words, models, log } = this.#options;
    const opened = new AcpSession({ chat, client, capabilities: this.#capabilities, words, models });
    this.#sessions.set(chat.id, opened);
    // After the answer to the request that is being handled.
    setImmediate(() => opened.begin());
    if (servers.length > 0)
      log(
        `The editor's MCP servers (${servers.map(({ name }) => name).join(", ")}) are not used. ` +
          "Add them to Holdfast's own configuration with: holdfast mcp add",
      );
    return opened;
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
