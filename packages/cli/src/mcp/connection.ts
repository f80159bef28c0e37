import { setTimeout as passed } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  ErrorCode,
  McpError,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { plainLine } from "../terminal/plain.ts";
import { outcomeUnknown, wasStopped } from "../tools/results/outcome-words.ts";
import { type Catalog, readCatalog } from "./catalog.ts";
import { type Hide, hideInMessage } from "./hide-secrets.ts";
import { noAnswer, notRun } from "./outcome-words.ts";
import type { ServerTransport } from "./stdio-transport.ts";

/** `failed`: it is tried again when a later turn begins. */
export type ServerState = "starting" | "ready" | "restarting" | "failed" | "closed";

export interface ConnectionOptions {
  readonly name: string;
  /** The version of this program, for the server. */
  readonly version: string;
  /** Throws an error worded for people if the server cannot be started as configured. */
  readonly open: () => ServerTransport;
  /** Reached by HTTP: nothing tells us that it has died. */
  readonly isRemote: boolean;
  readonly tools?: readonly string[];
  readonly timeoutMs: number;
  /** Takes the server's keys out of everything that it says. */
  readonly hide: Hide;
  /** Something that the user should know. */
  readonly warn: (text: string) => void;
  readonly limits?: Limits;
}

export interface Limits {
  /** How long a server may take to start and to list its tools. The first start may have to download it. */
  readonly startMs: number;
  /** How long a call waits for a server that is being restarted. */
  readonly restartMs: number;
  /** Waits before each restart; after the last one, the server counts as failed. */
  readonly backOffMs: readonly number[];
  /** A server that ran this long was not broken from the start: its restarts are counted from zero. */
  readonly stableMs: number;
  /** A failed server is tried again no sooner than this. */
  readonly retryMs: number;
  /** The longest a call may take, however often the server reports progress. */
  readonly callMs: number;
  /** How long a server that let a call time out may take to show that it is alive. */
  readonly pingMs: number;
}

const LIMITS: Limits = {
  startMs: 60_000,
  restartMs: 15_000,
  backOffMs: [500, 1000, 2000, 4000, 8000],
  stableMs: 60_000,
  retryMs: 30_000,
  callMs: 3_600_000,
  pingMs: 5000,
};

/** Pages of a list of tools. */
const PAGES_MAX = 50;
const LISTED_MAX = 20_000;
/** A server can say as often as it likes that its tools have changed. */
const RELIST_MS = 1000;

/**
 * The connection to one server, for as long as the agent runs. Restarts a server that dies, a bounded number of times
 * in a row. Only `call` throws if a server misbehaves; its message is written for the model.
 */
export class Connection {
  readonly name: string;
  readonly #options: ConnectionOptions;
  readonly #limits: Limits;
  #state: ServerState = "starting";
  #why: string | null = null;
  #client: Client | null = null;
  #transport: ServerTransport | null = null;
  #catalog: Catalog = { tools: [], problems: [] };
  #restarts = 0;
  #readySinceMs = 0;
  #failedAtMs = 0;
  #attempt: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  constructor(options: ConnectionOptions) {
    this.name = options.name;
    this.#options = options;
    this.#limits = options.limits ?? LIMITS;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** Why it is not ready; null if it is. */
  get why(): string | null {
    return this.#why;
  }

  /** Also while it is being restarted. */
  get catalog(): Catalog {
    return this.#catalog;
  }

  /** Resolves when the server is ready, or has failed. */
  get settled(): Promise<void> {
    return this.#attempt;
  }

  start(): void {
    this.#state = "starting";
    this.#attempt = this.#run();
  }

  /** Tries a failed server again, not more often than is sensible. */
  retry(): void {
    if (this.#state !== "failed" || performance.now() - this.#failedAtMs < this.#limits.retryMs) return;
    this.#restarts = 0;
    this.start();
  }

  /** Calls a tool by the server's own name for it. Returns the server's result, without the server's keys. */
  async call(
    tool: string,
    input: unknown,
    {
      signal,
      progress,
    }: { readonly signal?: AbortSignal | undefined; readonly progress?: (text: string) => void } = {},
  ): Promise<unknown> {
    const { timeoutMs, hide } = this.#options;
    await this.#waitUntilReady(signal);
    if (signal?.aborted) throw notRun(this.name, "the call was stopped first");
    const client = this.#client;
    const transport = this.#transport;
    if (this.#state !== "ready" || !client) throw notRun(this.name, this.#why ?? "it is not running");
    try {
      const params = { name: tool, arguments: input as Record<string, unknown> };
      // Not `callTool`: it compiles schemas that the server sent.
      const result = await client.request({ method: "tools/call", params }, ResultSchema, {
        timeout: timeoutMs,
        maxTotalTimeout: this.#limits.callMs,
        resetTimeoutOnProgress: true,
        onprogress: ({ message }) => {
          if (typeof message === "string") progress?.(`${plainLine(hide(message).slice(0, 1000))}\n`);
        },
        ...(signal ? { signal } : {}),
      });
      this.#restarts = 0;
      return hide(result);
    } catch (error) {
      throw this.#failureOf(error, client, transport, signal);
    }
  }

  async close(): Promise<void> {
    this.#state = "closed";
    this.#closing.abort();
    const transport = this.#transport;
    await this.#client?.close();
    await transport?.close();
    await this.#attempt;
  }

  /** Explains to the model why a call that was sent has failed. */
  #failureOf(
    error: unknown,
    client: Client,
    transport: ServerTransport | null,
    signal: AbortSignal | undefined,
  ): Error {
    if (signal?.aborted) return wasStopped();
    const code = error instanceof McpError ? error.code : undefined;
    if (code === ErrorCode.ConnectionClosed)
      return outcomeUnknown(`the MCP server "${this.name}" stopped (${this.#endOf(transport)})`);
    if (code === ErrorCode.RequestTimeout) {
      void this.#checkAlive(client);
      return noAnswer(this.name, this.#options.timeoutMs);
    }
    // The server's own word: it did not run the tool, or the tool failed.
    if (error instanceof McpError) return new Error(`The MCP server "${this.name}" reports: ${this.#textOf(error)}`);
    const why = this.#causeOf(error);
    if (isUnreached(error)) {
      void this.#drop(client);
      return notRun(this.name, why);
    }
    void this.#drop(client);
    return outcomeUnknown(`the connection to the MCP server "${this.name}" failed (${why})`);
  }

  #isChecking = false;

  /** Drops a server that does not even answer a ping: it hangs or is gone, and so would every later call. */
  async #checkAlive(client: Client): Promise<void> {
    if (this.#isChecking || this.#state !== "ready") return;
    this.#isChecking = true;
    try {
      await client.ping({ timeout: this.#limits.pingMs });
    } catch (error) {
      if (error instanceof McpError && error.code !== ErrorCode.RequestTimeout) return;
      await this.#drop(client);
    } finally {
      this.#isChecking = false;
    }
  }

  /** `onclose` does the rest. */
  async #drop(client: Client): Promise<void> {
    await client.close().catch(() => {});
  }

  async #waitUntilReady(signal: AbortSignal | undefined): Promise<void> {
    if (this.#state !== "starting" && this.#state !== "restarting") return;
    const late = new AbortController();
    const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
    const patience = passed(this.#limits.restartMs, undefined, { signal: either }).catch(() => {});
    await Promise.race([this.#attempt, patience]);
    late.abort();
  }

  async #run(): Promise<void> {
    for (;;) {
      const why = await this.#connect();
      if (why === null || this.#closing.signal.aborted) return;
      this.#why = why;
      // A server that never worked is probably configured wrongly: trying it again at once would not help.
      const waitMs = this.#state === "restarting" ? this.#limits.backOffMs[this.#restarts] : undefined;
      if (waitMs === undefined) {
        this.#state = "failed";
        this.#failedAtMs = performance.now();
        this.#options.warn(`The MCP server "${this.name}" is not available: ${why}.`);
        return;
      }
      this.#restarts += 1;
      if (!(await this.#pause(waitMs))) return;
    }
  }

  /** False if the agent ended meanwhile. */
  async #pause(waitMs: number): Promise<boolean> {
    await passed(waitMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    return !this.#closing.signal.aborted;
  }

  /** One attempt. Returns why it failed; null if the server is ready. */
  async #connect(): Promise<string | null> {
    const { startMs } = this.#limits;
    const client = new Client({ name: "holdfast", version: this.#options.version }, { capabilities: {} });
    let transport: ServerTransport | null = null;
    try {
      transport = this.#options.open();
      this.#transport = transport;
      this.#client = client;
      client.onclose = () => this.#lost(client, transport!);
      if (this.#options.isRemote) client.onerror = () => void this.#checkAlive(client);
      const signal = this.#closing.signal;
      await client.connect(transport, { timeout: startMs, maxTotalTimeout: startMs, signal });
      const catalog = await this.#list(client);
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => this.#relist(client));
      if (this.#client !== client) return this.#endOf(transport);
      this.#accept(catalog);
      this.#state = "ready";
      this.#why = null;
      this.#readySinceMs = performance.now();
      return null;
    } catch (error) {
      client.onclose = () => {};
      this.#client = null;
      await this.#drop(client);
      await transport?.close().catch(() => {});
      const isTimeout = error instanceof McpError && error.code === ErrorCode.RequestTimeout;
      const why = isTimeout ? `it did not answer within ${startMs / 1000} s` : (transport?.why ?? this.#causeOf(error));
      return withLastWords(why, transport);
    }
  }

  #lost(client: Client, transport: ServerTransport): void {
    if (this.#client !== client || this.#closing.signal.aborted) return;
    this.#client = null;
    // Not yet ready: the attempt reports it.
    if (this.#state !== "ready") return;
    this.#state = "restarting";
    this.#why = this.#endOf(transport);
    if (performance.now() - this.#readySinceMs > this.#limits.stableMs) this.#restarts = 0;
    const waitMs = this.#limits.backOffMs[this.#restarts];
    this.#restarts += 1;
    this.#attempt = (async () => {
      await transport.close().catch(() => {});
      if (waitMs === undefined) {
        this.#state = "failed";
        this.#failedAtMs = performance.now();
        this.#options.warn(`The MCP server "${this.name}" keeps stopping: ${this.#why}. It is not restarted for now.`);
      } else if (await this.#pause(waitMs)) await this.#run();
    })();
  }

  #accept(catalog: Catalog): void {
    const known = new Set(this.#catalog.problems);
    this.#catalog = catalog;
    for (const problem of catalog.problems)
      if (!known.has(problem)) this.#options.warn(`The MCP server "${this.name}": ${problem}.`);
  }

  async #list(client: Client): Promise<Catalog> {
    if (!client.getServerCapabilities()?.tools) return { tools: [], problems: ["it offers no tools"] };
    const listed: unknown[] = [];
    let cursor: string | undefined;
    const timeout = this.#limits.startMs;
    for (let page = 0; page < PAGES_MAX && listed.length < LISTED_MAX; page++) {
      const params = cursor === undefined ? {} : { cursor };
      // Not `listTools`: one malformed tool would hide all others.
      const found = await client.request({ method: "tools/list", params }, ResultSchema, { timeout });
      const { tools, nextCursor } = found as { readonly tools?: unknown; readonly nextCursor?: unknown };
      for (const tool of Array.isArray(tools) ? tools.slice(0, LISTED_MAX) : []) listed.push(tool);
      if (typeof nextCursor !== "string" || nextCursor === "") break;
      cursor = nextCursor;
    }
    return readCatalog(this.name, listed, this.#options.tools, this.#options.hide);
  }

  #relisting: Promise<void> | null = null;

  /** For the next turn. */
  #relist(client: Client): void {
    this.#relisting ??= (async () => {
      await this.#pause(RELIST_MS);
      this.#relisting = null;
      try {
        if (this.#client === client) this.#accept(await this.#list(client));
      } catch (error) {
        // The old list stays; if the server is gone, `onclose` knows.
        if (!(error instanceof Error)) throw error;
      }
    })();
  }

  #endOf(transport: ServerTransport | null): string {
    return withLastWords(transport?.why ?? "the connection was closed", transport);
  }

  /** Hides before it cuts: half of a key is a key too. */
  #textOf(error: Error): string {
    const text = hideInMessage(this.#options.hide, error.message.slice(0, MESSAGE_CHARS_MAX));
    return plainLine(text.slice(0, TEXT_CHARS_MAX)).toWellFormed();
  }

  /** The reason, on one line. `fetch` hides it in the cause. */
  #causeOf(error: unknown): string {
    const { cause } = error instanceof Error ? error : { cause: undefined };
    const said = cause instanceof Error && cause.message !== "" ? cause : error;
    return this.#textOf(said instanceof Error ? said : new Error(String(said)))
      .slice(0, WHY_CHARS_MAX)
      .toWellFormed();
  }
}

function withLastWords(why: string, transport: ServerTransport | null): string {
  return transport?.said ? `${why}: ${transport.said}` : why;
}

/** A longer message is not searched for keys, so only its start is shown. */
const MESSAGE_CHARS_MAX = 1024 * 1024;
const TEXT_CHARS_MAX = 1200;
const WHY_CHARS_MAX = 300;

/** The request did not reach the server, or the server refused it before it looked at it. */
function isUnreached(error: unknown): boolean {
  const { cause, code } = error as { readonly cause?: { readonly code?: unknown }; readonly code?: unknown };
  if (["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"].includes(String(cause?.code))) return true;
  return typeof code === "number" && [400, 401, 403, 404, 405].includes(code);
}
