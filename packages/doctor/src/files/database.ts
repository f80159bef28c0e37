import { constants, copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Door, Refused } from "./door.ts";

/** What was found in a page or in the file of a database, in SQLite's own words. */
export interface DatabaseDamage {
  readonly kind: "damaged-database" | "damaged-page";
  readonly words: string;
}

const COPIES_MAX = 3;
const DAMAGE_MAX = 100;
const COPIES = new WeakMap<Door, Map<string, DatabaseCopy>>();

/**
 * A private copy of an SQLite database, with what its log (`-wal`) holds. The file of the agent is never opened by
 * SQLite: that could write a log or a lock beside it, or hold up the agent.
 */
export class DatabaseCopy implements Disposable {
  readonly path: string;
  /** The file of the copy, for a repair that begins with it. */
  readonly copy: string;
  readonly damage: readonly DatabaseDamage[];
  readonly #database: DatabaseSync | null;

  private constructor(path: string, copy: string, database: DatabaseSync | null, damage: readonly DatabaseDamage[]) {
    this.path = path;
    this.copy = copy;
    this.#database = database;
    this.damage = damage;
  }

  /** Of a database that many sessions share, one copy for each door. */
  static shared(path: string, door: Door): DatabaseCopy {
    let copies = COPIES.get(door);
    if (!copies) {
      copies = new Map();
      COPIES.set(door, copies);
    }
    let copy = copies.get(path);
    if (!copy) {
      copy = door.keep(DatabaseCopy.open(path, door));
      copies.set(path, copy);
    }
    return copy;
  }

  /** Throws `Refused` if the file cannot be opened at all; what is damaged in it is in `damage`. */
  static open(path: string, door: Door): DatabaseCopy {
    const copy = copyOf(path, door);
    try {
      const database = new DatabaseSync(copy, { allowExtension: false });
      try {
        database.exec("pragma trusted_schema = off; pragma query_only = on");
        return new DatabaseCopy(path, copy, database, checked(database));
      } catch (error) {
        database.close();
        throw error;
      }
    } catch (error) {
      return new DatabaseCopy(path, copy, null, [{ kind: "damaged-database", words: messageOf(error) }]);
    }
  }

  /** A copy in which these statements were carried out, each with the same parameters: its path. */
  static changed(path: string, door: Door, statements: readonly string[], ...parameters: string[]): string {
    const copy = copyOf(path, door);
    const database = new DatabaseSync(copy, { allowExtension: false });
    try {
      database.exec("pragma trusted_schema = off");
      for (const statement of statements) database.prepare(statement).run(...parameters);
      database.exec("pragma wal_checkpoint(truncate)");
    } finally {
      database.close();
    }
    return copy;
  }

  /** The tables and their columns; empty if they cannot be read. */
  tables(): ReadonlyMap<string, readonly string[]> {
    const tables = new Map<string, readonly string[]>();
    for (const { name } of this.rows("select name from sqlite_schema where type = 'table' order by name"))
      tables.set(
        String(name),
        [...this.rows("select name from pragma_table_info(?)", String(name))].map((column) => String(column["name"])),
      );
    return tables;
  }

  /** The rows as far as they can be read: where a page is damaged, they end, and `damage` says so. */
  *rows(sql: string, ...parameters: (string | number)[]): Generator<Readonly<Record<string, unknown>>> {
    if (this.#database === null) return;
    try {
      yield* this.#database.prepare(sql).iterate(...parameters);
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#database?.close();
  }
}

/** Copies the file and its log at one moment: again if the agent wrote in between. */
function copyOf(path: string, door: Door): string {
  // It refuses links, FIFOs and the files of others.
  door.openRaw(path)[Symbol.dispose]();
  for (let tries = 1; ; tries++) {
    const copy = join(door.temporary(), `${door.nextNumber()}.db`);
    const state = (): string => JSON.stringify([door.facts(path), door.facts(`${path}-wal`)]);
    const before = state();
    try {
      copyFileSync(path, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      if (door.facts(`${path}-wal`) !== null) copyFileSync(`${path}-wal`, `${copy}-wal`, constants.COPYFILE_EXCL);
    } catch (error) {
      if (existsSync(path)) throw new Refused(path, messageOf(error), error);
      throw new Refused(path, "it is not there", error);
    }
    if (state() === before || tries === COPIES_MAX) return copy;
  }
}

function checked(database: DatabaseSync): DatabaseDamage[] {
  const found: DatabaseDamage[] = [];
  try {
    for (const row of database.prepare(`pragma integrity_check(${DAMAGE_MAX})`).iterate()) {
      const words = String(Object.values(row)[0]);
      if (words !== "ok") found.push({ kind: "damaged-page", words });
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
    found.push({ kind: "damaged-database", words: messageOf(error) });
  }
  return found;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_IOERR and the like: not a mistake in a statement. */
function isDamage(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && [10, 11, 26].includes(Number(error.errcode) & 0xff);
}
