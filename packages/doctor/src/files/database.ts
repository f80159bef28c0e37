import { constants, copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type Door, Refused } from "./door.ts";

/** What was found in a page or in the file of a database, in SQLite's own words. */
export interface DatabaseDamage {
  readonly kind: "damaged-database" | "damaged-page";
  readonly words: string;
}

const COPIES_MAX = 3;
const DAMAGE_MAX = 100;
const STATEMENTS_MAX = 32;
/** How many copies a run keeps for the sessions to come. Those in use are not counted. */
const SHARED_MAX = 4;
const SHARED = new WeakMap<Door, Map<string, SharedCopy>>();
const TAKEN = new WeakMap<Door, Map<string, DatabaseCopy>>();

/** A copy that the sessions of a run share. */
interface SharedCopy {
  readonly copy: DatabaseCopy;
  /** Of the file and its log, when they were copied. */
  readonly state: string;
  users: number;
}

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
  /** Statements that can be used again. */
  readonly #idle = new Map<string, StatementSync>();

  private constructor(path: string, copy: string, database: DatabaseSync | null, damage: readonly DatabaseDamage[]) {
    this.path = path;
    this.copy = copy;
    this.#database = database;
    this.damage = damage;
  }

  /**
   * Of a database that many sessions share: one copy for all doors of a run, checked once, and copied again when the
   * agent has written since. A door keeps the copy that it took.
   */
  static shared(path: string, door: Door): DatabaseCopy {
    const taken = mapOf(TAKEN, door);
    const known = taken.get(path);
    if (known) return known;
    const shared = mapOf(SHARED, door.run);
    const state = stateOf(path, door);
    let entry = shared.get(path);
    if (entry?.state !== state) entry = { copy: door.run.keep(DatabaseCopy.open(path, door.run)), state, users: 0 };
    const used = entry;
    const older = shared.get(path);
    // The last one used stands at the end.
    shared.delete(path);
    shared.set(path, used);
    if (older !== used && older?.users === 0) door.run.release(older.copy);
    used.users++;
    taken.set(path, used.copy);
    door.keep({
      [Symbol.dispose]: () => {
        taken.delete(path);
        if (--used.users === 0 && shared.get(path) !== used) door.run.release(used.copy);
      },
    });
    const idle = [...shared].filter(([, { users }]) => users === 0);
    for (const [each, { copy }] of idle.slice(0, Math.max(0, shared.size - SHARED_MAX))) {
      shared.delete(each);
      door.run.release(copy);
    }
    return used.copy;
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
      // It is taken away: the same words may be asked again before these rows end.
      const statement = this.#idle.get(sql) ?? this.#database.prepare(sql);
      this.#idle.delete(sql);
      // A number that is too large for one of JavaScript is no reason to stop.
      statement.setReadBigInts(true);
      for (const row of statement.iterate(...parameters)) yield withNumbers(row);
      if (this.#idle.size < STATEMENTS_MAX) this.#idle.set(sql, statement);
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
  }

  [Symbol.dispose](): void {
    if (this.#database?.isOpen) this.#database.close();
    for (const end of ["", "-wal", "-shm"]) rmSync(`${this.copy}${end}`, { force: true });
  }
}

function mapOf<T>(maps: WeakMap<Door, Map<string, T>>, door: Door): Map<string, T> {
  let map = maps.get(door);
  if (!map) {
    map = new Map();
    maps.set(door, map);
  }
  return map;
}

/** Changes whenever the agent writes to the database. */
const stateOf = (path: string, door: Door): string => JSON.stringify([door.facts(path), door.facts(`${path}-wal`)]);

/** Copies the file and its log at one moment: again if the agent wrote in between. */
function copyOf(path: string, door: Door): string {
  // It refuses links, FIFOs and the files of others.
  door.openRaw(path)[Symbol.dispose]();
  for (let tries = 1; ; tries++) {
    const copy = join(door.temporary(), `${door.nextNumber()}.db`);
    const before = stateOf(path, door);
    try {
      copyFileSync(path, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      if (door.facts(`${path}-wal`) !== null) copyFileSync(`${path}-wal`, `${copy}-wal`, constants.COPYFILE_EXCL);
    } catch (error) {
      if (existsSync(path)) throw new Refused(path, messageOf(error), error);
      throw new Refused(path, "it is not there", error);
    }
    if (stateOf(path, door) === before || tries === COPIES_MAX) return copy;
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

function withNumbers(row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const plain: Record<string, unknown> = {};
  for (const column in row) {
    const value = row[column];
    plain[column] =
      typeof value !== "bigint" ? value : Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
  return plain;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_IOERR and the like: not a mistake in a statement. */
function isDamage(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && [10, 11, 26].includes(Number(error.errcode) & 0xff);
}
