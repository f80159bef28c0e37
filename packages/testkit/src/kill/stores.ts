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

export async function openSpec(spec: StoreSpec, disk?: Disk): Promise<JournalStore> {
  const { module, place, durability, segmentBytesMax } = spec;
  const { openStore } = builtIn[module] ?? ((await import(module)) as StoreModule);
  return openStore(place, {
    durability,
    ...(disk ? { disk } : {}),
    ...(segmentBytesMax === undefined ? {} : { segmentBytesMax }),
  });
}
