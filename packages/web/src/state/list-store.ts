import { get, Refusal } from "../api/http.ts";
import type { SearchPage, Session, SessionPage, Summary } from "../api/wire.ts";
import { mergeSessions } from "./filters.ts";
import { Observable } from "./observable.ts";

const PAGE = 1000;
const FRESH = 50;
const POLL_MS = 2500;
const TYPING_MS = 120;

export interface SearchState {
  readonly query: string;
  /** Null while the search runs. */
  readonly hits: SearchPage["hits"] | null;
}

/** The sessions of the store, newest first. All of them are loaded: a row is small, and filters answer at once. */
export class ListStore {
  readonly sessions = new Observable<readonly Summary[]>([]);
  readonly isComplete = new Observable(false);
  readonly failure = new Observable<Refusal | null>(null);
  readonly found = new Observable<SearchState | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #typing: ReturnType<typeof setTimeout> | undefined;
  #searching: AbortController | null = null;
  #requests = 0;
  /** The number of the last request whose answer is shown: the answer to an earlier one is out of date. */
  #shown = 0;
  /** Deleted while the list was being loaded. */
  readonly #forgotten = new Set<string>();

  async load(): Promise<void> {
    try {
      let after: string | undefined;
      do {
        // The first page is small, so that something is on the screen at once.
        const page = await get<SessionPage>("/sessions", { limit: after === undefined ? 100 : PAGE, after });
        const there = page.sessions.filter(({ id }) => !this.#forgotten.has(id));
        this.sessions.update((known) => mergeSessions(known, there));
        after = page.next;
      } while (after !== undefined);
      this.isComplete.set(true);
      this.failure.set(null);
    } catch (error) {
      this.#failed(error);
    }
    this.#forgotten.clear();
    this.#poll();
  }

  /** What changed is at the top; a process that died changes nothing, so what ran before is asked for too. */
  async refresh(): Promise<void> {
    const request = ++this.#requests;
    try {
      const ran = this.sessions.value.filter(({ status }) => status === "running");
      const [fresh, running] = await Promise.all([
        get<SessionPage>("/sessions", { limit: FRESH }),
        ran.length > 0 ? get<SessionPage>("/sessions", { status: "running", limit: PAGE }) : null,
      ]);
      const told = new Set([...(running?.sessions ?? []), ...fresh.sessions].map(({ id }) => id));
      const ended = await Promise.all(ran.filter(({ id }) => !told.has(id)).map(asItIs));
      if (request < this.#shown) return;
      this.#shown = request;
      this.sessions.update((known) => {
        const merged = mergeSessions(mergeSessions(known, ended), [...(running?.sessions ?? [])]);
        const next = mergeSessions(merged, fresh.sessions);
        return same(known, next) ? known : next;
      });
      this.failure.set(null);
    } catch (error) {
      this.#failed(error);
    }
  }

  forget(id: string): void {
    if (!this.isComplete.value) this.#forgotten.add(id);
    // What was asked for before may still show it.
    this.#shown = ++this.#requests;
    this.sessions.update((known) => known.filter((one) => one.id !== id));
  }

  search(query: string): void {
    clearTimeout(this.#typing);
    this.#searching?.abort();
    if (query.trim() === "") {
      this.found.set(null);
      return;
    }
    this.found.set({ query, hits: null });
    this.#typing = setTimeout(() => void this.#search(query), TYPING_MS);
  }

  async #search(query: string): Promise<void> {
    const controller = new AbortController();
    this.#searching = controller;
    try {
      const { hits } = await get<SearchPage>("/search", { q: query.trim(), limit: 300 }, controller.signal);
      if (!controller.signal.aborted) this.found.set({ query, hits });
    } catch (error) {
      if (!controller.signal.aborted) this.#failed(error);
    }
  }

  #poll(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      try {
        // If loading failed halfway, most sessions are missing.
        if (document.visibilityState === "visible") await (this.isComplete.value ? this.refresh() : this.load());
      } finally {
        this.#poll();
      }
    }, POLL_MS);
  }

  #failed(error: unknown): void {
    if (!(error instanceof Refusal)) throw error;
    this.failure.set(error);
  }
}

function same(one: readonly Summary[], other: readonly Summary[]): boolean {
  return (
    one.length === other.length &&
    one.every((a, index) => {
      const b = other[index]!;
      return a.id === b.id && a.at === b.at && a.status === b.status && a.title === b.title && a.queued === b.queued;
    })
  );
}

/** A session that ran when it was last listed. */
async function asItIs(known: Summary): Promise<Summary> {
  const { status, title, queue } = await get<Session>(`/sessions/${known.id}`);
  return { ...known, status, title, queued: queue.length };
}
