import type { Sabotage } from "./list.ts";

/** Ways to break what the SQLite store adds to SQLite. */
export const sqliteSabotages: readonly Sabotage[] = [
  {
    name: "sqlite: a hard link is opened",
    file: "stores/sqlite/database/open-database.ts",
    find: "if (found.links > 1) throw hasSeveralNames(file, found.links);",
    replace: "if (found.links < 1) throw hasSeveralNames(file, found.links);",
    look: ["unit/stores/sqlite/database/sqlite-name"],
  },
  {
    name: "sqlite: a second process opens a file that is in use",
    file: "stores/sqlite/database/file-lock.ts",
    find: "disk.hardLock(lockPath(file))",
    replace: '"none" as ReturnType<typeof disk.hardLock>',
    look: ["unit/stores/sqlite/sqlite-one-process"],
  },
  {
    name: "sqlite: the index of the log is in memory that processes share",
    file: "stores/sqlite/database/connection.ts",
    find: 'sqlite.exec("PRAGMA locking_mode=EXCLUSIVE");',
    replace: "",
    look: ["unit/stores/sqlite/sqlite-one-process"],
  },
  {
    name: "sqlite: an error in the background ends the process",
    file: "stores/sqlite/journal.ts",
    find: "      if (isHoldfastError(error)) return;\n",
    replace: "      throw error;\n",
    look: ["unit/stores/sqlite/sqlite-store"],
  },
  {
    name: "sqlite: an index is believed against the table and the journal",
    file: "stores/sqlite/rows/catalogue.ts",
    find: "  if (row?.id === id && !row.isTrashed) return row;",
    replace: "  if (row && !row.isTrashed) return row;",
    look: ["unit/stores/sqlite/rows/sqlite-catalogue"],
  },
  {
    name: "sqlite: verify does not look at the catalogue",
    file: "stores/sqlite/store.ts",
    find: '      ...(rows.isSound ? [] : ["sessions"]),\n',
    replace: "",
    look: ["unit/stores/sqlite/sqlite-flips", "unit/stores/sqlite/sqlite-damage"],
  },
  {
    name: "sqlite: gc believes one row that says that a session is deleted",
    file: "stores/sqlite/trash.ts",
    find: "    if (!rows.isSound) throw",
    replace: "    if (!rows) throw",
    look: ["unit/stores/sqlite/sqlite-flips"],
  },
];
