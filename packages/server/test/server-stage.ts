import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "holdfast";
import type { Config } from "../../cli/src/config.ts";
import { LocalHost } from "../../cli/src/host/local/local-host.ts";
import { serveHost } from "../../cli/src/serve/served-host.ts";
import { APP } from "../../cli/src/store/app.ts";
import { config } from "../../cli/test/unit/host/host-stage.ts";
import { newToken } from "../src/access/credentials.ts";
import { HoldfastClient } from "../src/client/index.ts";
import { type RunningServer, type ServerOptions, startServer } from "../src/index.ts";

/** For what happens soon, on a machine that may be busy. */
export const PATIENT = { timeout: 60_000, interval: 10 } as const;

export interface StageOptions extends Partial<Omit<ServerOptions, "host">> {
  readonly config?: Partial<Config>;
}

/** Real agents with the offline model, in a real server on a real socket; removed at the end of the scope. */
export class ServerStage implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-server-"));
  readonly work = mkdtempSync(join(tmpdir(), "holdfast-work-"));
  readonly token = newToken();
  #running: { readonly host: LocalHost; readonly server: RunningServer } | null = null;

  static async start(options: StageOptions = {}): Promise<ServerStage> {
    const stage = new ServerStage();
    await stage.start(options);
    return stage;
  }

  async start({ config: settings, ...options }: StageOptions = {}): Promise<void> {
    const store = await openStore(this.folder, { app: APP, recordsToolStarts: true });
    const host = new LocalHost(store, { ...config, ...settings }, "person", null, true);
    const server = await startServer({
      host: serveHost(host),
      token: this.token,
      version: "0.0.0",
      port: 0,
      cwd: this.work,
      ...options,
    });
    this.#running = { host, server };
  }

  get server(): RunningServer {
    return this.#running!.server;
  }

  get host(): LocalHost {
    return this.#running!.host;
  }

  get client(): HoldfastClient {
    return new HoldfastClient({ url: this.server.url, token: this.token });
  }

  async session(options: { title?: string } = {}): Promise<string> {
    const { id } = await this.client.call("createSession", { body: { cwd: this.work, ...options } });
    return id;
  }

  fetch(path: string, init: RequestInit & { token?: string | null; headers?: Record<string, string> } = {}) {
    const { token = this.token, headers = {}, ...rest } = init;
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    // A kept connection would lead to a server that was stopped.
    const all = { connection: "close", ...authorization, ...headers };
    return fetch(`${this.server.url}${path}`, { ...rest, headers: all });
  }

  /** Hands running turns over, or aborts them if `hurry` has fired. */
  async stop(graceMs = 0, hurry?: AbortSignal): Promise<void> {
    const running = this.#running;
    this.#running = null;
    await running?.server.stop(graceMs, hurry);
    await running?.host.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    for (const path of [this.folder, this.work]) rmSync(path, { recursive: true, force: true });
  }
}
