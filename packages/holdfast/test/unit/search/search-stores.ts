import { join } from "node:path";
import { newId } from "holdfast";
import { Memory, openFolderStore, openMemoryStore, openSqliteStore } from "holdfast/internal";
import type { JournalStore, NewRecord } from "holdfast/store";
import { findDialect } from "../../../src/dialects/index.ts";
import { type SearchHit, SearchIndex, type SearchIndexOptions } from "../../../src/search/search-index.ts";
import { place } from "../../place.ts";

/** Every time later than the one before, so that the order of sessions is known. */
let now = Date.parse("2026-11-15T08:00:00Z");
export const clock = (): number => ++now;

export const kinds = ["folder", "sqlite", "memory"] as const;
export type Kind = (typeof kinds)[number];

/** Where a store is, and the index over it; both can be opened again. */
export interface SearchSite extends AsyncDisposable {
  store(): Promise<JournalStore>;
  index(store: JournalStore, options?: Partial<SearchIndexOptions>): SearchIndex;
}

export class Site implements SearchSite {
  readonly kind: Kind;
  readonly #place = place();
  readonly #memory = new Memory();
  readonly #open: { close(): Promise<void> }[] = [];

  constructor(kind: Kind) {
    this.kind = kind;
  }

  get path(): string {
    return join(this.#place.path, "store");
  }

  async store(): Promise<JournalStore> {
    const options = { clock, durability: "process" } as const;
    const store = await (this.kind === "folder"
      ? openFolderStore(this.path, options)
      : this.kind === "sqlite"
        ? openSqliteStore(this.path, options)
        : openMemoryStore({ ...options, memory: this.#memory }));
    this.#open.push(store);
    return store;
  }

  index(store: JournalStore, options: Partial<SearchIndexOptions> = {}): SearchIndex {
    const index = new SearchIndex(store, { dialectNamed: findDialect, delayMs: 0, ...options });
    this.#open.push(index);
    return index;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const opened of this.#open.reverse()) await opened.close();
    this.#place[Symbol.dispose]();
  }
}

/** A session in the dialect `anthropic` with these records, closed. */
export async function session(store: JournalStore, records: readonly NewRecord[], id = newId()): Promise<string> {
  const journal = await store.create(id, [attributes(), ...records]);
  await journal.close();
  return id;
}

export async function append(store: JournalStore, id: string, ...records: readonly NewRecord[]): Promise<void> {
  const { journal } = await store.open(id);
  for (const record of records) await journal.append(record);
  await journal.close();
}

export function attributes(more: Record<string, unknown> = {}): NewRecord {
  return { kind: "session", dialect: "anthropic", ...more };
}

export function said(id: string, content: unknown, more: Record<string, unknown> = {}): NewRecord {
  return { kind: "message", id, turn: 1, step: id, message: { role: "user", content }, ...more };
}

export async function hitsOf(index: SearchIndex, text: string, wanted?: (id: string) => boolean): Promise<SearchHit[]> {
  return Array.fromAsync(index.search(text, wanted));
}

/** The ids of the messages that are found. */
export async function found(index: SearchIndex, text: string): Promise<string[]> {
  return (await hitsOf(index, text)).map(({ message }) => message);
}
