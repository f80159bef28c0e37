import type { SubjectOptions } from "@holdfast/testkit";
import { type JournalStore, openFolderStore } from "holdfast";

/** The stores that live on a disk, by the name that a child process is told. */
export const openers = {
  folder: (path: string, options: SubjectOptions): Promise<JournalStore> => openFolderStore(path, options),
};
