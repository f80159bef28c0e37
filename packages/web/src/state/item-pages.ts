import { get } from "../api/http.ts";
import type { Item, StateEvent, Transcript } from "../api/wire.ts";
import { isComparable, isOlder, stepTo } from "./item-version.ts";
import { Observable } from "./observable.ts";
import { messageOf, missingPages, PAGE, type SparseItems, withRange, withSplice } from "./sparse-items.ts";

/** How many items are loaded at first: the end of the conversation, which is what people look at. */
export const FIRST_PAGE = 2 * PAGE;

/** What to go to: a message, a call (the one nearest to the time, if its id repeats), or a time. */
export interface ItemTarget {
  readonly message?: string;
  readonly call?: string;
  readonly atMs: number | null;
}

/** A page that changes while it is loaded is asked for again, this many times at most. */
const TRIES = 3;

type Splice = NonNullable<StateEvent["items"]>;
type Query = Readonly<Record<string, string | number | undefined>>;

/** A request under way. */
interface Request {
  /** The first index that has changed since it was sent; infinite if none has. */
  changedFrom: number;
}

/**
 * One conversation of a session, as far as it is loaded: the current one, or one that was replaced. The server's
 * answers and events arrive in any order: an answer never replaces what is newer.
 */
export class ItemPages {
  readonly items = new Observable<SparseItems>([]);
  /** Its last record; undefined for the current conversation. */
  readonly until: number | undefined;
  readonly #id: string;
  readonly #onLoaded: (items: readonly Item[]) => void;
  readonly #onFailure: (error: unknown) => void;
  readonly #loading = new Set<number>();
  readonly #requests = new Set<Request>();
  /** Names the state of the items, in a session that this server has open. */
  #version: string | null = null;
  #isClosed = false;
  #first: Promise<Transcript | null> | null = null;

  constructor(
    id: string,
    until: number | undefined,
    onLoaded: (items: readonly Item[]) => void,
    onFailure: (error: unknown) => void,
  ) {
    this.#id = id;
    this.until = until;
    this.#onLoaded = onLoaded;
    this.#onFailure = onFailure;
  }

  /** Answers that are still to come are ignored. */
  close(): void {
    this.#isClosed = true;
  }

  /** Everything that is known, told at once. */
  start({ from, items, count, version }: Transcript): void {
    this.items.set(withRange([], from, items, count));
    this.#version = version;
    this.#changed(0);
  }

  /** Replaces the end, from the first index in the answer on. */
  replaceEnd({ from, items, count, version }: Transcript): void {
    this.items.update((known) => withRange(known.slice(0, from), from, items, count));
    this.#version = version;
    this.#changed(from);
  }

  /** The server's items have this version, after this change. Missing changes are read. */
  step(version: string, change: Splice | undefined): void {
    const step = stepTo(version, this.#version);
    if (step === "unknown") void this.readEnd();
    if (step !== "next" || !change) return;
    this.items.update((known) => withSplice(known, change.at, change.remove, change.insert));
    this.#version = version;
    this.#changed(change.at);
  }

  /** Reads the end: the items changed in a way that no event told us. */
  async readEnd(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      const isDone = await this.#request({ last: FIRST_PAGE }, (got, request) => this.#takeEnd(got, request));
      if (isDone !== false) return;
    }
  }

  /** False if something else was told meanwhile, and which of the two is newer is unknown. */
  #takeEnd(got: Transcript, { changedFrom }: Request): boolean {
    if (isOlder(got.version, this.#version)) return true;
    if (changedFrom !== Number.POSITIVE_INFINITY && !isComparable(got.version, this.#version)) return false;
    // If the end begins with another item than was there, what is before it may be another conversation's.
    const before = this.items.value[got.from];
    if (got.from === 0 || (before !== undefined && before.id === got.items[0]?.id)) this.replaceEnd(got);
    else this.start(got);
    return true;
  }

  #changed(from: number): void {
    for (const request of this.#requests) request.changedFrom = Math.min(request.changedFrom, from);
  }

  /** Loads the end of a replaced conversation, once. */
  async ensureFirst(): Promise<void> {
    this.#first ??= this.#ask({ last: FIRST_PAGE });
    if ((await this.#first) === null) this.#first = null;
  }

  /** Loads the items of a range, those that are not there yet. */
  ensure(from: number, to: number): void {
    for (const page of missingPages(this.items.value, from, to)) void this.#loadPage(page);
  }

  /** Loads the page of one item, and waits for it. */
  async ensureIndex(index: number): Promise<void> {
    if (!this.items.value[index]) await this.#loadPage(Math.floor(index / PAGE) * PAGE);
  }

  /** Its index, after one request at most; null if it is not in this conversation. */
  async find({ message, call, atMs }: ItemTarget, isExact: boolean): Promise<number | null> {
    const around = message ?? call;
    const items = this.items.value;
    const known = items.flatMap((item, index) => (item && isWanted(item, message, call) ? [index] : []));
    // Another call may have the same id, where nothing is loaded yet.
    const isSure = call === undefined || atMs === null || !items.includes(undefined);
    if (isSure && known.length > 0) return nearest(items, known, atMs);
    const near = atMs === null || (isExact && call === undefined) ? undefined : new Date(atMs).toISOString();
    const got = await this.#ask({ around, near, limit: FIRST_PAGE });
    if (got?.found == null) return null;
    const found = got.items[got.found - got.from];
    if (isExact && !(found && isWanted(found, message, call))) return null;
    // A change may have moved it meanwhile.
    const isThere = !found || this.items.value[got.found]?.id === found.id;
    const index = isThere ? got.found : this.items.value.findIndex((item) => item?.id === found.id);
    return index < 0 ? null : index;
  }

  async #loadPage(from: number): Promise<void> {
    if (this.#loading.has(from)) return;
    this.#loading.add(from);
    for (let tries = 0; tries < TRIES; tries++) {
      const got = await this.#ask({ from, limit: PAGE });
      if (!got || missingPages(this.items.value, from, from + PAGE - 1).length === 0) break;
    }
    this.#loading.delete(from);
  }

  #ask(query: Query): Promise<Transcript | null> {
    return this.#request(query, async (got, request) => {
      // The events before this answer are still on their way, and must not change what it shows already.
      if (isOlder(this.#version, got.version)) await this.readEnd();
      if (this.#isClosed || isOlder(this.#version, got.version)) return null;
      const isCurrent = got.version !== null && got.version === this.#version;
      this.#fill(got, isCurrent ? Number.POSITIVE_INFINITY : request.changedFrom);
      this.#onLoaded(got.items);
      return got;
    });
  }

  /** Null if it failed, or its answer came too late. */
  async #request<T>(query: Query, take: (got: Transcript, request: Request) => T | Promise<T>): Promise<T | null> {
    const request: Request = { changedFrom: Number.POSITIVE_INFINITY };
    this.#requests.add(request);
    try {
      const got = await get<Transcript>(`/sessions/${this.#id}/transcript`, { ...query, until: this.until });
      return this.#isClosed ? null : await take(got, request);
    } catch (error) {
      this.#onFailure(error);
      return null;
    } finally {
      this.#requests.delete(request);
    }
  }

  /** Fills in what an answer tells, as far as nothing newer is known. */
  #fill({ from, items, count }: Transcript, changedFrom: number): void {
    const isUnchanged = changedFrom === Number.POSITIVE_INFINITY;
    const told = isUnchanged ? items : items.slice(0, Math.max(0, changedFrom - from));
    this.items.update((known) =>
      withRange(known, from, told, isUnchanged ? Math.max(count, known.length) : known.length),
    );
  }
}

function nearest(items: SparseItems, indexes: readonly number[], atMs: number | null): number {
  if (atMs === null) return indexes[0]!;
  const away = (index: number): number => Math.abs(Date.parse(items[index]!.at) - atMs);
  return indexes.reduce((best, one) => (away(one) < away(best) ? one : best));
}

function isWanted(item: Item, message: string | undefined, call: string | undefined): boolean {
  if (call !== undefined) return item.kind === "call" && item.call === call;
  return message !== undefined && (item.id === message || messageOf(item.id) === message);
}
