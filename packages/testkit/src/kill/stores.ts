import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Disk } from "holdfast/disk";
import { openFolderStore, openSqliteStore } from "holdfast/internal";
import type { Durability, JournalStore } from "holdfast/store";

/** How to tell a process about a store. */
export interface StoreSpec {
  /** `folder`, `sqlite`, or the URL of a module that exports `openStore` (a `StoreModule`). */
  readonly module: string;
  /** An existing folder for this store alone. */
  readonly place: string;
  readonly durability: Durability;
  /** Small, so that segments roll over often. Folder store only. */
  readonly segmentBytesMax?: number;
}

/** What a module must export to have its store killed. `disk` is passed in a process that is killed at a disk step. */
export interface StoreModule {
  openStore(
    place: string,
    options: { readonly durability: Durability; readonly disk?: Disk; readonly segmentBytesMax?: number },
  ): Promise<JournalStore>;
}

const builtIn: Record<string, StoreModule> = {
  folder: { openStore: (place, options) => openFolderStore(join(place, "store"), options) },
  sqlite: {
    openStore: (place, { segmentBytesMax: _, ...options }) => openSqliteStore(join(place, "store.sqlite"), options),
  },
};

/**
 * The laboratory's own view of a store. If only one process can use it at a time, it is open only during a call, and no
 * writer may live meanwhile.
 */
export class OwnView implements AsyncDisposable {
  readonly #spec: StoreSpec;
  /** Null if it cannot stay open. */
  readonly #store: JournalStore | null;

  private constructor(spec: StoreSpec, store: JournalStore | null) {
    this.#spec = spec;
    this.#store = store;
  }

  static async open(spec: StoreSpec): Promise<OwnView> {
    const store = await openSpec(spec);
    if (store.capabilities.shared) return new OwnView(spec, store);
    await store.close();
    return new OwnView(spec, null);
  }

  /** How many writers can live at the same time. */
  lanes(wanted: number): number {
    return this.#store ? wanted : 1;
  }

  async use<T>(work: (store: JournalStore) => Promise<T>): Promise<T> {
    if (this.#store) return work(this.#store);
    await using store = await openSpec(this.#spec);
    return await work(store);
  }

  /** Leaves everything as a dead writer has left it: opening a store repairs it, so this looks at a copy. */
  async look(work: (store: JournalStore) => Promise<void>): Promise<void> {
    if (this.#store) return work(this.#store);
    const place = mkdtempSync(join(tmpdir(), "holdfast-look-"));
    try {
      cpSync(this.#spec.place, place, { recursive: true });
      await using store = await openSpec({ ...this.#spec, place });
      await work(store);
    } finally {
      rmSync(place, { recursive: true });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store?.close();
  }
}

export async function openSpec(spec: StoreSpec, disk?: Disk): Promise<JournalStore> {
  const { module, place, durability, segmentBytesMax } = spec;
  const { openStore } = builtIn[module] ?? ((await import(module)) as StoreModule);
  return openStore(place, {
    durability,
    ...(disk ? { disk } : {}),
    ...(segmentBytesMax === undefined ? {} : { segmentBytesMax }),
  });
}
