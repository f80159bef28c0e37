import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import { removeDatabase } from "../disk/database-file.ts";
import type { Disk } from "../disk/disk.ts";
import { nodeDisk } from "../disk/node-disk.ts";
import { isHoldfastError } from "../errors.ts";
import type { JournalStore } from "../journal/contract.ts";
import { storeClosed } from "../journal/refusals.ts";
import type { Answer, TextBacklog, TextBehind, TextFound, TextProgress, TextTables } from "../journal/texts.ts";
import { excerptOf, wordsOf } from "../text/search-words.ts";
import { Base, IndexFailure, openBase, patiently } from "./base.ts";
import { catchUp, isFresh, Unread } from "./catch-up.ts";
import type { DialectNamed } from "./texts.ts";

export interface SearchHit {
  readonly session: string;
  /** The message id; empty if the hit is in the title. */
  readonly message: string;
  /** The words around the hit, on one line. */
  readonly excerpt: string;
}

export interface SearchIndexOptions {
  /** Finds a dialect by the name a session gives; null if it is unknown: then only titles are found. */
  readonly dialectNamed: DialectNamed;
  /** The disk that holds the store's `searchFile`. SQLite itself always uses the real one. */
  readonly disk?: Disk;
  /** The delay between the end of a turn and its indexing. */
  readonly delayMs?: number;
  /** How long a search waits for another process that is writing to the index. */
  readonly patienceMs?: number;
}

const DELAY_MS = 250;
const PATIENCE_MS = 5000;
/** Indexing uses at most 1/REST_FACTOR of the time: to find what is new, a store may read a whole segment. */
const REST_FACTOR = 20;
const HITS_PER_PAGE = 20;
/** How many sessions are indexed at once, if the store has tables for it. */
const TOGETHER = 4;
/** How long a search that takes what there is waits for the index to be completed. */
const PARTIAL_MS = 500;
/** How often an index is rebuilt before one in memory replaces it. */
const TRIES_MAX = 2;
/** The limit if someone else keeps deleting it. */
const REPLACED_MAX = 50;

/**
 * A session that is not fully searched: `why` it could not be read; null if only the start of a very long message is
 * searched.
 */
export type OnIncomplete = (session: string, why: { readonly code: string; readonly message: string } | null) => void;

export interface SearchWatch {
  readonly onIncomplete?: OnIncomplete | undefined;
  /**
   * Called while a store with tables for it adds many sessions to its index: all of them for the first search, which
   * can take minutes, and later those that have changed.
   */
  readonly onProgress?: ((progress: TextProgress) => void) | undefined;
  /** Does not wait for that: yields what is found so far, and the indexing goes on in the background. */
  readonly partial?: boolean | undefined;
}

/**
 * The full-text index of a store's sessions (S20). The end of a turn adds to it and each search completes it; a list
 * never does. It is derived: whatever happens to its file, the results are the same (C22). A store may have tables for
 * it. Where neither tables nor a file can be kept or written (memory stores, a read-only folder, a full disk, a process
 * that hangs while it writes), an index in memory replaces it until `close`.
 */
export class SearchIndex {
  readonly #store: JournalStore;
  readonly #dialectNamed: DialectNamed;
  readonly #disk: Disk;
  readonly #delayMs: number;
  readonly #patienceMs: number;
  /** Null if it is not in a file. */
  #path: string | null;
  /** Null if it is not in the store. If both are null, it is in memory. */
  #texts: TextTables | null;
  #base: Base | null = null;
  #opening: Promise<Base> | null = null;
  readonly #noted = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> | null = null;
  #restUntil = 0;
  /** Completing the index, if the store has tables for it. */
  #healing: Promise<void> | null = null;
  /** The store has more to index in the background. */
  #hasBacklog = false;
  #failure: unknown = null;
  /** The sessions that could not be read when the index was last completed. */
  readonly #unread = new Map<string, { readonly code: string; readonly message: string }>();
  #closed = false;

  constructor(store: JournalStore, options: SearchIndexOptions) {
    this.#store = store;
    this.#dialectNamed = options.dialectNamed;
    this.#disk = options.disk ?? nodeDisk;
    this.#delayMs = options.delayMs ?? DELAY_MS;
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS;
    this.#path = store.searchFile;
    this.#texts = store.texts ?? null;
  }

  /**
   * Why the last noted session could not be indexed; null if it was. Nobody has to handle this: the next search catches
   * up.
   */
  get failure(): unknown {
    return this.#failure;
  }

  /**
   * Call when a turn of the session has ended, or the session was renamed or deleted: its changes are indexed soon, in
   * the background. Returns at once and never throws. If something goes wrong (the index is busy, the disk is full, the
   * process ends first), the next search catches up.
   */
  note(id: string): void {
    if (this.#closed || (this.#path === null && !this.#texts)) return;
    this.#noted.add(id);
    this.#schedule();
  }

  /** Resolves when no noted session is waiting any more. */
  async settled(): Promise<void> {
    while (this.#noted.size > 0 || this.#working) await (this.#working ?? breathe());
  }

  /**
   * Completes the index, then yields the hits, a few at a time: sessions in the order of a list, and in each its title
   * (`message` is empty), then its messages, newest first. `wanted` is called once for each session with a hit. All
   * words must occur in one message; the last may be the start of a word. Messages hidden from the user are not found.
   * A session that cannot be read (another user's, of a newer format, too damaged) is found by what was indexed before,
   * and a message of many megabytes by its start: `onIncomplete` reports these sessions before the first hit. Throws
   * STORE_CLOSED and the store's errors.
   */
  async *search(
    text: string,
    wanted: (session: string) => boolean | Promise<boolean> = () => true,
    watch: SearchWatch = {},
  ): AsyncGenerator<SearchHit, void, undefined> {
    const query = wordsOf(text);
    if (query === null) return;
    const { onIncomplete } = watch;
    let complete: Base | null = null;
    const ask = <T>(question: (tables: TextTables) => Answer<T>): Promise<T> =>
      this.#using(async (base) => {
        // Even in the middle of a search: the file may have been deleted since the last page.
        if (base !== complete) await this.#complete(base, watch);
        complete = base;
        // Nothing here waits for anything external: without this, a long result would block everything else.
        await breathe();
        return patiently(this.#patienceMs, () => question(base.tables));
      });

    const found = await ask((tables) => tables.sessionsWith(query));
    if (onIncomplete) {
      for (const [id, { code, message }] of this.#unread) if (await wanted(id)) onIncomplete(id, { code, message });
      const cut = await ask((tables) => tables.cut());
      for (const id of cut) if (await wanted(id)) onIncomplete(id, null);
    }
    for (const session of found) {
      if (!(await wanted(session))) continue;
      for (let before: number | null = null, more = true; more; ) {
        const from: number | null = before;
        const page: TextFound[] = await ask((tables) => tables.hits(session, query, from, HITS_PER_PAGE));
        for (const { seq, message, marked } of page) {
          // A long message has several rows.
          if (seq === before) continue;
          before = seq;
          yield { session, message, excerpt: excerptOf(marked) };
        }
        more = page.length === HITS_PER_PAGE;
      }
    }
  }

  /** Stops work in progress, without waiting for noted sessions. Call before closing the store. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#noted.clear();
    await Promise.allSettled([this.#working, this.#opening, this.#healing]);
    this.#base?.close();
    this.#base = null;
  }

  async #complete(base: Base, { onProgress, partial }: SearchWatch): Promise<void> {
    if (!base.isInStore) return this.#heal(base);
    const completing = this.#healAlone(base, onProgress);
    if (!partial) return completing;
    completing.catch(() => undefined);
    const waiting = new AbortController();
    const waited = sleep(PARTIAL_MS, undefined, { signal: waiting.signal }).catch(() => undefined);
    try {
      await Promise.race([completing, waited]);
    } finally {
      waiting.abort();
    }
  }

  /**
   * One at a time: two would index the same sessions. What another search began before this one may lack the newest.
   */
  async #healAlone(base: Base, onProgress: SearchWatch["onProgress"]): Promise<void> {
    while (this.#healing) await this.#healing.catch(() => undefined);
    const healing = this.#heal(base, onProgress);
    this.#healing = healing;
    try {
      await healing;
    } finally {
      this.#healing = null;
    }
  }

  /** Makes the index match the store exactly. */
  async #heal(base: Base, onProgress?: SearchWatch["onProgress"]): Promise<void> {
    this.#unread.clear();
    if (base.tables.behind) {
      for await (const page of base.tables.behind()) {
        if (page.progress) onProgress?.(page.progress);
        await this.#indexPage(base, page, this.#patienceMs);
        if (this.#closed) return;
      }
      while (await base.tables.sweep()) await breathe();
      return;
    }
    // In one call: a session that is written to moves to the front, so a list in pages could miss it.
    const { sessions } = await this.#store.list();
    const marks = await patiently(this.#patienceMs, () => base.tables.marks());
    for (const { id, at, stamp = at, head, unreadable } of sessions) {
      const mark = marks.get(id);
      marks.delete(id);
      if (unreadable) {
        this.#unread.set(id, unreadable);
        continue;
      }
      // Hits come in list order.
      const listed = { id, at: stamp, head };
      if (isFresh(mark, listed, this.#dialectNamed)) continue;
      await this.#index(base, id, this.#patienceMs, listed);
      await breathe();
    }
    for (const id of marks.keys()) {
      // Not listed, but present: another process has created it since.
      if (!(await this.#store.has(id))) await patiently(this.#patienceMs, () => base.tables.forget(id));
    }
    while (await patiently(this.#patienceMs, () => base.tables.sweep())) await breathe();
  }

  async #indexPage(base: Base, { sessions, gone, finish }: TextBacklog, patienceMs: number): Promise<void> {
    const left = sessions.values();
    const indexRest = async (): Promise<void> => {
      for (const one of left) await this.#index(base, one.id, patienceMs, one);
    };
    await Promise.all(Array.from({ length: TOGETHER }, indexRest));
    for (const id of gone) await base.tables.forget(id);
    if (!this.#closed) await finish(sessions.map(({ id }) => id).filter((id) => this.#unread.has(id)));
  }

  async #index(base: Base, id: string, patienceMs: number, listed?: TextBehind): Promise<void> {
    const source = {
      store: this.#store,
      dialectNamed: this.#dialectNamed,
      patienceMs,
      isOver: () => this.#closed,
    };
    try {
      await catchUp(source, base, id, listed);
      this.#unread.delete(id);
    } catch (error) {
      if (!(error instanceof Unread)) throw error;
      if (isHoldfastError(error.cause, "SESSION_NOT_FOUND")) await patiently(patienceMs, () => base.tables.forget(id));
      // A session that cannot be read does not stop the others from being found. The caller of the search is told.
      else this.#unread.set(id, error.cause);
    }
  }

  #schedule(): void {
    if (this.#timer || this.#working || (this.#noted.size === 0 && !this.#hasBacklog)) return;
    const wait = Math.max(this.#delayMs, this.#restUntil - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#working = this.#work().finally(() => {
        this.#working = null;
        if (!this.#closed) this.#schedule();
      });
    }, wait);
    // An index must not keep the process alive.
    this.#timer.unref();
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    const started = performance.now();
    const ids = [...this.#noted];
    this.#noted.clear();
    this.#failure = null;
    this.#hasBacklog = false;
    let base: Base | null = null;
    try {
      base = await this.#ready();
      // An index in memory is only for searches, so they fill it.
      if (base.isFile || base.isInStore) for (const id of ids) await this.#index(base, id, 0);
      if (base.isInStore) await this.#indexBacklog(base);
    } catch (error) {
      this.#failure = error;
      if (base && error instanceof IndexFailure && error.why !== "busy") this.#abandon(base, error, 1);
    }
    const now = performance.now();
    this.#restUntil = now + (now - started) * REST_FACTOR;
  }

  /** One page of what nobody has indexed yet, so that the first search need not do all of it. */
  async #indexBacklog(base: Base): Promise<void> {
    if (!base.tables.behind || this.#healing) return;
    for await (const page of base.tables.behind({ background: true })) {
      await this.#indexPage(base, page, 0);
      this.#hasBacklog = !this.#closed && page.progress !== null;
      return;
    }
  }

  /** Runs `use` on the index, and again on a new index if this one is unusable. */
  async #using<T>(use: (base: Base) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const base = await this.#ready();
      try {
        return await use(base);
      } catch (error) {
        if (base.isInStore && isHoldfastError(error, "STORE_FORBIDDEN") && !this.#closed) {
          // A read-only client: the results are the same, from memory.
          this.#texts = null;
          if (base === this.#base) this.#base = null;
          continue;
        }
        if (!(error instanceof IndexFailure)) throw error;
        if (!base.isFile && !this.#closed) throw error.cause;
        this.#abandon(base, error, tries);
      }
    }
  }

  #abandon(base: Base, { why }: IndexFailure, tries: number): void {
    // Another search has noticed first.
    if (base !== this.#base) return;
    const mine = base.isInPlace();
    base.close();
    this.#base = null;
    const path = this.#path;
    // If it was replaced, try the new one, whatever was wrong with this one.
    const hopeless = mine ? why !== "content" || tries > TRIES_MAX : tries > REPLACED_MAX;
    if (hopeless) this.#path = null;
    // Remove it if it is damaged, or if the disk is full, since journals need the space. If it is only busy, leave it
    // alone.
    if (why !== "busy" && mine && path !== null) removeDatabase(this.#disk, path);
  }

  #ready(): Promise<Base> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #open(): Promise<Base> {
    if (this.#closed) throw storeClosed(this.#store.url);
    if (this.#base?.isInPlace()) return this.#base;
    this.#base?.close();
    this.#base = null;
    const base = await this.#make();
    if (this.#closed) {
      base.close();
      throw storeClosed(this.#store.url);
    }
    this.#base = base;
    return base;
  }

  async #make(): Promise<Base> {
    if (this.#texts) return Base.inStore(this.#texts);
    const base = await openBase(this.#path, { disk: this.#disk, patienceMs: this.#patienceMs });
    if (!base.isFile) this.#path = null;
    return base;
  }
}
