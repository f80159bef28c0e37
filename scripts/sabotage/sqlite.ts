import type { Sabotage } from "./list.ts";

/** Ways to break what the SQLite store adds to SQLite. */
export const sqliteSabotages: readonly Sabotage[] = [
  {
    name: "sqlite: a hard link is opened",
    file: "stores/sqlite/database/open-database.ts",
    find: "if (links > 1) throw hasSeveralNames(file, links);",
    replace: "if (links < 1) throw hasSeveralNames(file, links);",
    look: ["unit/sqlite-name"],
  },
  {
    name: "sqlite: a file that is used under another name is opened",
    file: "stores/sqlite/database/name.ts",
    find: '  if (sight.isSameFile) return "two-names";',
    replace: "",
    look: ["unit/sqlite-name"],
  },
  {
    name: "sqlite: a flag that is up keeps nobody out",
    file: "stores/sqlite/database/flag-lock.ts",
    find: "if (flag === 0 || slot === this.#slot || flag + rank < CONFLICT) continue;",
    replace: "if (flag === 0 || slot === this.#slot || flag + rank < CONFLICT + 9) continue;",
    look: ["unit/sqlite-flag-lock"],
  },
  {
    name: "sqlite: how long a flag has been in the way is forgotten with each use that it does not hinder",
    file: "stores/sqlite/database/flag-lock.ts",
    find: "if (this.#headOf(slot) !== head) this.#inTheWay.delete(slot);",
    replace: "this.#inTheWay.delete(slot);",
    look: ["unit/sqlite-flag-lock"],
  },
  {
    name: "sqlite: who opens a store waits for an instant at which nobody reads",
    file: "stores/sqlite/database/flag-lock.ts",
    find: "if (inTheWay.length > 0 && rank === RANK.alone) inTheWay = this.#outlast(inTheWay);",
    replace: "",
    look: ["unit/sqlite-flag-lock"],
  },
  {
    name: "sqlite: an error in the background ends the process",
    file: "stores/sqlite/journal.ts",
    find: "      if (isHoldfastError(error)) return;\n",
    replace: "",
    look: ["unit/sqlite-store"],
  },
  {
    name: "sqlite: no keeper, so that a connection that is left takes the log along",
    file: "stores/sqlite/database/connection.ts",
    find: 'urlOf(file, "ro").href',
    replace: '":memory:"',
    look: ["unit/sqlite-close", "unit/sqlite-ended-thread"],
  },
  {
    name: "sqlite: an index is believed against the table and the journal",
    file: "stores/sqlite/rows/catalogue.ts",
    find: "  return row?.id === id && !row.isTrashed ? sessionOf(row) : null;",
    replace: "  return row && !row.isTrashed ? sessionOf(row) : null;",
    look: ["unit/sqlite-flips", "unit/sqlite-damage"],
  },
  {
    name: "sqlite: verify does not look at the catalogue",
    file: "stores/sqlite/rows/catalogue.ts",
    find: "  return wrong.map(damagedPart);",
    replace: "  return [];",
    look: ["unit/sqlite-flips", "unit/sqlite-damage"],
  },
  {
    name: "sqlite: gc believes one row that says that a session is deleted",
    file: "stores/sqlite/trash.ts",
    find: "  return key > 0 && findSession(rows, id)?.key !== key && (ownerOf(rows, key) ?? id) === id;",
    replace: "  return key > 0 && (findSession(rows, id) || true) && (ownerOf(rows, key) ?? id) === id;",
    look: ["unit/sqlite-flips"],
  },
  {
    name: "sqlite: an older schema is used as it is",
    file: "stores/sqlite/database/open-database.ts",
    find: '  if (verdict === "mine") return version === SCHEMA_VERSION ? "this" : null;',
    replace: '  if (verdict === "mine") return version > 0 ? "this" : null;',
    look: ["unit/sqlite-file"],
  },
  {
    name: "leases: a hard lock that is still being asked for outlives its lease",
    file: "disk/hard-lock.ts",
    find: '    signal?.addEventListener("abort", stop, { once: true });\n',
    replace: "",
    look: ["unit/hard-lock"],
  },
];
