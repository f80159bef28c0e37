import type { Store, StoreOptions } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { deadlyDisk } from "../../../holdfast/test/deadly-disk.ts";

/** When the process kills itself. */
export interface Deadline {
  readonly folder: string;
  /** SIGKILL right after this write to the journal, counted from 1; 0: no kill. */
  readonly killAfter: number;
  /** Which writes count: those of streamed words, whose number depends on the weather, or all others. */
  readonly counts: "drafts" | "records";
}

/** A store in a folder that kills its process with a write to a journal. */
export function openDeadly({ folder, killAfter, counts }: Deadline, options: StoreOptions = {}): Promise<Store> {
  const disk = deadlyDisk({ killAfter, counts });
  return openStoreWith((given) => openFolderStore(folder, { ...given, disk }), { recordsToolStarts: true, ...options });
}
