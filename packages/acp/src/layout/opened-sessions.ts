import type { Params } from "../record/message.ts";
import type { OpenedSession } from "../wrap/client.ts";
import type { SettingRequest } from "../wrap/session-settings.ts";
import { OPENED_CHARS_MAX } from "./frames.ts";

/** What an editor opened its sessions with, in memory alone. Beyond the limit, the oldest are forgotten first. */
export class OpenedSessions {
  readonly #params = new Map<string, { readonly opened: OpenedSession; readonly chars: number }>();
  #chars = 0;

  get all(): readonly OpenedSession[] {
    return [...this.#params.values()].map(({ opened }) => opened);
  }

  /** Null: it was closed. */
  set(session: string, params: Params | null, chosen: readonly SettingRequest[] = []): void {
    this.#drop(session);
    if (params === null) return;
    const opened: OpenedSession = [session, params, chosen];
    const chars = JSON.stringify(opened).length;
    this.#params.set(session, { opened, chars });
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
