import type { Params } from "../wrap/message.ts";
import { OPENED_CHARS_MAX } from "./frames.ts";

/** What an editor opened its sessions with, in memory alone. Beyond the limit, the oldest are forgotten first. */
export class OpenedSessions {
  readonly #params = new Map<string, { readonly params: Params; readonly chars: number }>();
  #chars = 0;

  get all(): readonly (readonly [session: string, params: Params])[] {
    return [...this.#params].map(([session, { params }]) => [session, params]);
  }

  /** Null: it was closed. */
  set(session: string, params: Params | null): void {
    this.#drop(session);
    if (params === null) return;
    const chars = session.length + JSON.stringify(params).length;
    this.#params.set(session, { params, chars });
    this.#chars += chars;
    for (const oldest of this.#params.keys()) {
      if (this.#chars <= OPENED_CHARS_MAX) break;
      this.#drop(oldest);
    }
  }

  #drop(session: string): void {
    this.#chars -= this.#params.get(session)?.chars ?? 0;
    this.#params.delete(session);
  }
}
