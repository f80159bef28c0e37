import type { Library } from "./library.ts";
import { objectOf, type Params, stringOf } from "./message.ts";

/** Cursors of our own pages begin with this; all others are the agent's. */
const OURS = "holdfast:";

/** One list of the sessions that the agent knows and those that only we know: the agent's pages first, then ours. */
export class MergedList {
  readonly #library: Library;
  /** What the agent's pages had, so that no session is listed twice. */
  readonly #listed = new Set<string>();

  constructor(library: Library) {
    this.#library = library;
  }

  /** The answer to `session/list`. `ask`: asks the agent; null if it has no list. */
  async page(params: Params, ask: ((params: Params) => Promise<unknown>) | null): Promise<Params> {
    const cursor = stringOf(params["cursor"]);
    if (cursor === null) this.#listed.clear();
    if (ask && !cursor?.startsWith(OURS)) {
      const { sessions, nextCursor } = objectOf(await ask(params)) ?? {};
      const found = Array.isArray(sessions) ? sessions.map((one) => this.#named(one)) : [];
      for (const one of found) this.#listed.add(stringOf(objectOf(one)?.["sessionId"]) ?? "");
      return { sessions: found, nextCursor: stringOf(nextCursor) ?? OURS };
    }
    const after = cursor?.slice(OURS.length) || undefined;
    const { sessions, next } = await this.#library.list(stringOf(params["cwd"]) ?? undefined, after);
    const fresh = sessions.filter(({ sessionId }) => !this.#listed.has(sessionId));
    return { sessions: fresh, ...(next === undefined ? {} : { nextCursor: `${OURS}${next}` }) };
  }

  /** By the id that the editor knows. */
  #named(listed: unknown): unknown {
    const entry = objectOf(listed);
    const session = this.#library.ofAgent(stringOf(entry?.["sessionId"]) ?? "");
    return session ? { ...entry, sessionId: session.id } : listed;
  }
}
