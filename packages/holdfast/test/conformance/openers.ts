import type { SubjectOptions } from "@holdfast/testkit";
import { openFolderStore, openSqliteStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";

/** The stores that live on a disk, by the name that a child process is told. */
export const openers = {
  folder: (path: string, options: SubjectOptions): Promise<JournalStore> => openFolderStore(path, options),
  sqlite: (path: string, options: SubjectOptions): Promise<JournalStore> => openSqliteStore(path, options),
};
