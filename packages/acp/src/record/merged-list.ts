import type { Library } from "./library.ts";
import { objectOf, type Params, stringOf } from "./message.ts";

/** Cursors of our own pages begin with this; all others are the agent's. */
const OURS = "holdfast:";

/** One list of the sessions that the agent knows and those that only we know: the agent's pages first, then ours. */
export class MergedList {
  readonly #library: Library;
  /** What the agent's pages had, so that no session is listed twice. */
  readonly #listed = new Set<string>();
  /** The ids that editors know, by those of the agent, as they were when the list was begun. */
  #ids: ReadonlyMap<string, string | null> | null = null;

  constructor(library: Library) {
    this.#library = library;
  }

  /** The answer to `session/list`. `ask`: asks the agent; null if it has no list. */
  async page(params: Params, ask: ((params: Params) => Promise<unknown>) | null): Promise<Params> {
    const cursor = stringOf(params["cursor"]);
    if (cursor === null) this.#listed.clear();
    if (ask && !cursor?.startsWith(OURS)) {
      const { sessions, nextCursor } = objectOf(await ask(params)) ?? {};
      if (cursor === null || this.#ids === null) this.#ids = await this.#library.idsByAgentSession();
      const found = Array.isArray(sessions) ? sessions : [];
      return { sessions: found.flatMap((one) => this.#once(one)), nextCursor: stringOf(nextCursor) ?? OURS };
    }
    const after = cursor?.slice(OURS.length) || undefined;
    const { sessions, next } = await this.#library.list(stringOf(params["cwd"]) ?? undefined, after);
    const fresh = sessions.filter(({ sessionId }) => !this.#listed.has(sessionId));
    return { sessions: fresh, ...(next === undefined ? {} : { nextCursor: `${OURS}${next}` }) };
  }

  /** By the id that the editor knows; nothing if it has been listed, or our own pages list it. */
  #once(listed: unknown): readonly unknown[] {
    const entry = objectOf(listed);
    const agentSession = stringOf(entry?.["sessionId"]);
    if (agentSession === null) return [listed];
    const known = this.#ids?.get(agentSession);
    const sessionId = known === undefined ? agentSession : known;
    if (sessionId === null || this.#listed.has(sessionId)) return [];
    this.#listed.add(sessionId);
    return [sessionId === agentSession ? listed : { ...entry, sessionId }];
  }
}
