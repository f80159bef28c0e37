import { objectOf, type Params, stringOf } from "../record/message.ts";
import { JOURNAL } from "../wrap/agent-to-editor.ts";
import { FINISH } from "../wrap/editor-to-agent.ts";
import { LineClient, type LineClientOptions, RequestError } from "./line-client.ts";

export interface DriveOptions extends LineClientOptions {
  readonly cwd: string;
  readonly version: string;
  /** The session to go on with, by the id that editors know, and how many turns it has; null for a new one. */
  readonly session: { readonly id: string; readonly turns: number } | null;
  /** The prompt; null to finish the interrupted turn. `retry`: also one that is parked. */
  readonly prompt: string | null;
  readonly retry: boolean;
  /** The record of a new session, by the id that lists show. */
  readonly onCreated: (journal: string) => void;
}

/** So often in a row a step is tried again because a process in between has died. */
const STEP_TRIES_MAX = 4;

/**
 * Drives one turn of a wrapped agent, as an editor would: opens the session, sends the prompt, and waits for the end of
 * the turn, whatever dies meanwhile. What is recorded is never sent again.
 */
export class Drive {
  readonly #options: DriveOptions;
  readonly #client: LineClient;
  #session: string | null;

  constructor(options: DriveOptions) {
    this.#options = options;
    this.#client = new LineClient(options);
    this.#session = options.session?.id ?? null;
  }

  /** Resolves when the turn has ended: false if there was nothing to finish. Rejects with RequestError. */
  async run(): Promise<boolean> {
    const reading = this.#client.read();
    reading.catch(() => undefined);
    await this.#initialize();
    if (this.#options.prompt === null) {
      // A parked turn is retried once, whatever dies after that.
      let isFirst = true;
      const { finished } = await this.#step(() => {
        const retry = isFirst && this.#options.retry;
        isFirst = false;
        return this.#finish({ asked: true, ...(retry ? { retry } : {}) });
      });
      return finished === true;
    }
    await this.#open();
    await this.#prompt(this.#options.prompt);
    return true;
  }

  /** The person stops the turn. */
  async cancel(): Promise<void> {
    if (this.#session !== null) await this.#client.notify("session/cancel", { sessionId: this.#session });
  }

  #initialize(): Promise<Params> {
    const clientInfo = { name: "holdfast", title: "Holdfast, without an editor", version: this.#options.version };
    // No files and no terminals: the agent uses its own.
    const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
    return this.#step(() => this.#client.request("initialize", { protocolVersion: 1, clientCapabilities, clientInfo }));
  }

  async #open(): Promise<void> {
    const { session, onCreated } = this.#options;
    if (session) {
      await this.#step(() => this.#client.request("session/resume", { sessionId: session.id, ...this.#place }));
      return;
    }
    const made = await this.#step(() => this.#client.request("session/new", this.#place));
    this.#session = stringOf(made["sessionId"]);
    const journal = stringOf(objectOf(made["_meta"])?.[JOURNAL]);
    if (journal !== null) onCreated(journal);
  }

  get #place(): Params {
    return { cwd: this.#options.cwd, mcpServers: [] };
  }

  async #prompt(text: string): Promise<void> {
    const before = this.#options.session?.turns ?? 0;
    const prompt = [{ type: "text", text }];
    let isLost = false;
    await this.#step(async () => {
      if (isLost) {
        // The process that recorded it has died: it may have recorded the prompt, and the end of its turn too.
        const { finished, turns } = await this.#finish({});
        if (finished === true || Number(turns) > before) return {};
      }
      isLost = true;
      return this.#client.request("session/prompt", { sessionId: this.#session, prompt });
    });
  }

  #finish(more: Params): Promise<Params> {
    return this.#client.request(FINISH, { sessionId: this.#session, ...this.#place, ...more });
  }

  async #step(take: () => Promise<Params>): Promise<Params> {
    for (let tries = 1; ; tries++) {
      try {
        return await take();
      } catch (error) {
        if (!(error instanceof RequestError) || !error.isInterrupted || tries >= STEP_TRIES_MAX) throw error;
      }
    }
  }
}
