import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { Store } from "holdfast";
import { isHoldfastError } from "holdfast";
import { RecordedSession } from "./recorded-session.ts";

const SESSION = "acp.session";
const AGENT = "acp.agent";
const PAGE = 50;

export interface ListedSession {
  readonly sessionId: string;
  readonly cwd: string;
  readonly title: string | null;
  readonly updatedAt: string;
}

/** The sessions of one wrapped agent, by the ids that editors know. */
export class Library {
  readonly #store: Store;
  readonly #agent: string;
  readonly #app: string;
  readonly #open = new Map<string, RecordedSession>();

  constructor(store: Store, command: readonly string[]) {
    this.#store = store;
    this.#agent = createHash("sha256").update(JSON.stringify(command)).digest("hex").slice(0, 16);
    this.#app = basename(command[0] ?? "agent");
  }

  get open(): readonly RecordedSession[] {
    return [...this.#open.values()];
  }

  of(id: string): RecordedSession | null {
    return this.#open.get(id) ?? null;
  }

  /** The session that the agent knows by this id. */
  ofAgent(agentSession: string): RecordedSession | null {
    return this.open.find((one) => one.agentSession === agentSession) ?? null;
  }

  async create(id: string, cwd: string): Promise<RecordedSession> {
    const labels = { [SESSION]: id, [AGENT]: this.#agent };
    const session = await this.#store.create({ dialect: "acp", app: this.#app, cwd, labels });
    return this.#keep(new RecordedSession(id, session));
  }

  /** Opens a session of an earlier process; null if there is none. Throws SESSION_BUSY. */
  async reopen(id: string): Promise<RecordedSession | null> {
    const known = this.#open.get(id);
    if (known) return known;
    const journal = await this.#journalOf(id);
    if (journal === null) return null;
    return this.#keep(new RecordedSession(id, await this.#store.resume(journal, { dialect: "acp", app: this.#app })));
  }

  async list(
    cwd: string | undefined,
    after: string | undefined,
  ): Promise<{ sessions: ListedSession[]; next?: string }> {
    const { sessions, next } = await this.#store.list({
      labels: { [AGENT]: this.#agent },
      empty: true,
      limit: PAGE,
      ...(cwd === undefined ? {} : { cwd }),
      ...(after === undefined ? {} : { after }),
    });
    return {
      sessions: sessions.flatMap(({ labels, cwd: place, title, at }) => {
        const sessionId = labels?.[SESSION];
        if (sessionId === undefined || place === undefined) return [];
        return [{ sessionId, cwd: place, title: title === "" ? null : title, updatedAt: at }];
      }),
      ...(next === undefined ? {} : { next }),
    };
  }

  async close(id: string): Promise<void> {
    const known = this.#open.get(id);
    this.#open.delete(id);
    await known?.close();
  }

  /** Moves it to the trash. */
  async remove(id: string): Promise<void> {
    await this.close(id);
    const journal = await this.#journalOf(id);
    if (journal === null) return;
    try {
      await this.#store.delete(journal);
    } catch (error) {
      if (!isHoldfastError(error, "SESSION_NOT_FOUND")) throw error;
    }
  }

  async closeAll(): Promise<void> {
    for (const { id } of this.open) await this.close(id);
  }

  async #journalOf(id: string): Promise<string | null> {
    const labels = { [SESSION]: id, [AGENT]: this.#agent };
    const { sessions } = await this.#store.list({ labels, empty: true, limit: 1 });
    return sessions[0]?.id ?? null;
  }

  #keep(session: RecordedSession): RecordedSession {
    this.#open.set(session.id, session);
    return session;
  }
}
