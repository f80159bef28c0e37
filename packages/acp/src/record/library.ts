import { createHash } from "node:crypto";
import { basename } from "node:path";
import { type AcpMessage, isHoldfastError, newId, type Recorder, type Store } from "holdfast";
import { objectOf } from "./message.ts";
import type { CallEvidence } from "./noted-calls.ts";
import { AGENT_SESSION, RecordedSession } from "./recorded-session.ts";

export const SESSION = "acp.session";
export const AGENT = "acp.agent";
const PAGE = 50;
const NAMES_PAGE = 1000;

export interface ListedSession {
  readonly sessionId: string;
  readonly cwd: string;
  readonly title: string | null;
  readonly updatedAt: string;
}

export interface LibraryOptions {
  /** Asks the process that has a session open to let go of it; returns whether it did. */
  readonly free?: (pid: number) => Promise<boolean>;
  /** How the folder of a session is noted. Default: it is not. */
  readonly evidence?: (journal: string) => CallEvidence | null;
}

/** The sessions of one wrapped agent, by the ids that editors know. */
export class Library {
  readonly #store: Store;
  readonly #agent: string;
  readonly #app: string;
  readonly #open = new Map<string, RecordedSession>();
  readonly #free: (pid: number) => Promise<boolean>;

  readonly #evidence: (journal: string) => CallEvidence | null;

  constructor(
    store: Store,
    command: readonly string[],
    { free = async () => false, evidence = () => null }: LibraryOptions = {},
  ) {
    this.#store = store;
    this.#free = free;
    this.#evidence = evidence;
    this.#agent = agentOf(command);
    this.#app = basename(command[0] ?? "agent");
  }

  get open(): readonly RecordedSession[] {
    return [...this.#open.values()];
  }

  of(id: string): RecordedSession | null {
    return this.#open.get(id) ?? null;
  }

  /** Another session is open at the agent under the same id: agents that count their sessions use an id again. */
  isSupplanted(session: RecordedSession): boolean {
    return this.open.some((one) => one !== session && one.agentSession === session.agentSession);
  }

  /** The session that the agent knows by this id. */
  ofAgent(agentSession: string): RecordedSession | null {
    // Most messages are of the session that the one before was of.
    if (this.#last?.agentSession === agentSession && this.#open.get(this.#last.id) === this.#last) return this.#last;
    for (const one of this.#open.values()) {
      if (one.agentSession !== agentSession) continue;
      this.#last = one;
      return one;
    }
    return null;
  }
  #last: RecordedSession | null = null;

  async create(id: string, cwd: string): Promise<RecordedSession> {
    const labels = { [SESSION]: id, [AGENT]: this.#agent };
    const recorder = await this.#store.record<AcpMessage>({ dialect: "acp", app: this.#app, cwd, labels });
    return this.#keep(id, recorder, cwd);
  }

  /**
   * A session that the agent has just made, as a fork of `source` or as a new one. It gets an id of its own if the
   * agent has used this one before: an agent that numbers its sessions reuses ids.
   */
  async add(agentSession: string, cwd: string, source: RecordedSession | null): Promise<RecordedSession> {
    const isTaken = await this.has(agentSession);
    const id = isTaken ? newId() : agentSession;
    const session = await (source ? this.fork(source, id, cwd) : this.create(id, cwd));
    if (isTaken) await session.movedTo(agentSession);
    return session;
  }

  /** A session that begins with the conversation of another one, and works in this folder. */
  async fork(source: RecordedSession, id: string, cwd: string): Promise<RecordedSession> {
    const fork = await this.#store.fork(source.journal, {
      labels: { [SESSION]: id, [AGENT_SESSION]: id },
      app: this.#app,
      cwd,
    });
    await fork.close();
    return this.#keep(id, await this.#recorderOf(fork.id), cwd);
  }

  /** Opens a session of an earlier process; null if there is none. Throws SESSION_BUSY. */
  async reopen(id: string): Promise<RecordedSession | null> {
    const known = this.#open.get(id);
    if (known) return known;
    const journal = await this.#journalOf(id);
    if (journal === null) return null;
    const session = this.#keep(id, await this.#recorderOf(journal), null);
    // On a full disk: it is listed twice, and can be opened all the same.
    await session.addLabel().catch(() => undefined);
    return session;
  }

  async #recorderOf(journal: string): Promise<Recorder<AcpMessage>> {
    const options = { dialect: "acp", app: this.#app } as const;
    try {
      return await this.#store.record<AcpMessage>(journal, options);
    } catch (error) {
      const pid = isHoldfastError(error, "SESSION_BUSY") ? objectOf(error.facts["holder"])?.["pid"] : null;
      if (typeof pid !== "number" || pid === process.pid || !(await this.#free(pid))) throw error;
      return this.#store.record<AcpMessage>(journal, options);
    }
  }

  /** Also one of an earlier process. */
  async has(id: string): Promise<boolean> {
    return this.#open.has(id) || (await this.#journalOf(id)) !== null;
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

  /**
   * For each id under which the agent may know one of these sessions: the id that editors know. Null: the session has
   * another id at the agent now, and what the agent has under this one is left over.
   */
  async idsByAgentSession(): Promise<Map<string, string | null>> {
    const ids = new Map<string, string | null>();
    const own = new Set<string>();
    for (let after: string | undefined; ; ) {
      const query = { labels: { [AGENT]: this.#agent }, empty: true, limit: NAMES_PAGE };
      const { sessions, next } = await this.#store.list({ ...query, ...(after === undefined ? {} : { after }) });
      for (const { labels = {} } of sessions) {
        const { [SESSION]: id, [AGENT_SESSION]: agentSession = id } = labels;
        if (id === undefined || agentSession === undefined) continue;
        own.add(id);
        // An agent that numbers its sessions reuses ids: the newest session counts.
        const isMoved = agentSession !== id;
        if (!ids.has(agentSession) || (isMoved && ids.get(agentSession) === agentSession)) ids.set(agentSession, id);
      }
      if (next === undefined) break;
      after = next;
    }
    for (const id of own) if (!ids.has(id)) ids.set(id, null);
    for (const { agentSession, id } of this.#open.values()) ids.set(agentSession, id);
    return ids;
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

  /** One that cannot be closed does not keep the others open. */
  async closeAll(): Promise<void> {
    const closed = await Promise.allSettled(this.open.map(({ id }) => this.close(id)));
    for (const one of closed) if (one.status === "rejected") throw one.reason;
  }

  async #journalOf(id: string): Promise<string | null> {
    const labels = { [SESSION]: id, [AGENT]: this.#agent };
    const { sessions } = await this.#store.list({ labels, empty: true, limit: 1 });
    return sessions[0]?.id ?? null;
  }

  #keep(id: string, recorder: Recorder<AcpMessage>, folder: string | null): RecordedSession {
    const session = new RecordedSession(id, recorder, this.#evidence(recorder.id));
    session.folder = folder;
    this.#open.set(id, session);
    return session;
  }
}

/** How lists know the sessions of an agent. */
export function agentOf(command: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(command)).digest("hex").slice(0, 16);
}
