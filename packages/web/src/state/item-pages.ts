import { get } from "../api/http.ts";
import type { Item, Transcript } from "../api/wire.ts";
import { Observable } from "./observable.ts";
import { messageOf, missingPages, PAGE, type SparseItems, withRange } from "./sparse-items.ts";

/** How many items are loaded at first: the end of the conversation, which is what people look at. */
export const FIRST_PAGE = 2 * PAGE;

/** What to go to: a message, a call (the one nearest to the time, if its id repeats), or a time. */
export interface Wanted {
  readonly message?: string;
  readonly call?: string;
  readonly atMs: number | null;
}

/** One conversation of a session, as far as it is loaded: the current one, or one that was replaced. */
export class ItemPages {
  readonly items = new Observable<SparseItems>([]);
  /** Its last record; undefined for the current conversation. */
  readonly until: number | undefined;
  readonly #id: string;
  readonly #onLoaded: (items: readonly Item[]) => void;
  readonly #onFailure: (error: unknown) => void;
  readonly #loading = new Set<number>();
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
  async find({ message, call, atMs }: Wanted, isExact: boolean): Promise<number | null> {
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
    return isExact && !(found && isWanted(found, message, call)) ? null : got.found;
  }

  async #loadPage(from: number): Promise<void> {
    if (this.#loading.has(from)) return;
    this.#loading.add(from);
    await this.#ask({ from, limit: PAGE });
    this.#loading.delete(from);
  }

  async #ask(query: Readonly<Record<string, string | number | undefined>>): Promise<Transcript | null> {
    try {
      const got = await get<Transcript>(`/sessions/${this.#id}/transcript`, { ...query, until: this.until });
      this.items.update((items) => withRange(items, got.from, got.items, Math.max(got.count, items.length)));
      this.#onLoaded(got.items);
      return got;
    } catch (error) {
      this.#onFailure(error);
      return null;
    }
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
