import { constants, copyFileSync, existsSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type KnownSchema, rebuildDatabase } from "../salvage/rebuild.ts";
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

/** The file of a copy, and the state of the agent's own when it was made. */
export interface Copied {
  readonly copy: string;
  readonly state: string;
}

/** A copy that the sessions of a run share. */
interface SharedCopy {
  readonly copy: DatabaseCopy;
  /** Of the file and its log, when they were copied. */
  readonly state: string;
  users: number;
}

/**
 * A private copy of an SQLite database, with what its log (`-wal`) holds. The file of the agent is never opened by
 * SQLite: that could write a log or a lock beside it, or hold up the agent. Of a damaged one, it is a new database with
 * every row that can be read.
 */
export class DatabaseCopy implements Disposable {
  readonly path: string;
  /** The file of the copy, for a repair that begins with it. */
  readonly copy: string;
  /** Of the agent's file and its log, when they were copied. */
  readonly state: string;
  readonly damage: readonly DatabaseDamage[];
  readonly #database: DatabaseSync;
  /** Statements that can be used again. */
  readonly #idle = new Map<string, StatementSync>();

  private constructor(
    path: string,
    { copy, state }: Copied,
    database: DatabaseSync,
    damage: readonly DatabaseDamage[],
  ) {
    this.path = path;
    this.copy = copy;
    this.state = state;
    this.#database = database;
    this.damage = damage;
  }

  /**
   * Of a database that many sessions share: one copy for all doors of a run, checked once, and copied again when the
   * agent has written since. A door keeps the copy that it took.
   */
  static shared(path: string, door: Door, known: KnownSchema | null = null): DatabaseCopy {
    const key = `${known?.name ?? ""}\0${path}`;
    const taken = mapOf(TAKEN, door);
    const mine = taken.get(key);
    if (mine) return mine;
    const shared = mapOf(SHARED, door.run);
    const state = stateOf(path, door);
    let entry = shared.get(key);
    if (entry?.state !== state)
      entry = { copy: door.run.keep(DatabaseCopy.open(path, door.run, known)), state, users: 0 };
    const used = entry;
    const older = shared.get(key);
    // The last one used stands at the end.
    shared.delete(key);
    shared.set(key, used);
    if (older !== used && older?.users === 0) door.run.release(older.copy);
    used.users++;
    taken.set(key, used.copy);
    door.keep({
      [Symbol.dispose]: () => {
        taken.delete(key);
        if (--used.users === 0 && shared.get(key) !== used) door.run.release(used.copy);
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
  static open(path: string, door: Door, known: KnownSchema | null = null): DatabaseCopy {
    const copied = copyOf(path, door);
    const { copy, state } = copied;
    const { database, damage } = openChecked(copy);
    if (database !== null && damage.length === 0) return new DatabaseCopy(path, copied, database, damage);
    // While it is open: SQLite carries its log over into the file when it closes it.
    const rebuilt = `${copy}.rebuilt`;
    assertSpace(path, door);
    rebuildDatabase(copy, rebuilt, known);
    if (database?.isOpen) database.close();
    removeDatabase(copy);
    return new DatabaseCopy(path, { copy: rebuilt, state }, openReadOnly(rebuilt), damage);
  }

  /** A copy in which these statements were carried out, each with the same parameters. */
  static changed(path: string, door: Door, statements: readonly string[], ...parameters: string[]): Copied {
    const copied = copyOf(path, door);
    const { copy } = copied;
    const database = new DatabaseSync(copy, { allowExtension: false });
    try {
      database.exec("pragma trusted_schema = off");
      for (const statement of statements) database.prepare(statement).run(...parameters);
      database.exec("pragma wal_checkpoint(truncate)");
    } finally {
      database.close();
    }
    return copied;
  }

  /** A copy of this copy, changed: its path. Everything is in the one file. */
  changed(door: Door, change: (database: DatabaseSync) => void): string {
    assertSpace(this.path, door);
    const target = join(door.temporary(), `${door.nextNumber()}.db`);
    for (const end of ["", "-wal"])
      if (existsSync(`${this.copy}${end}`))
        copyFileSync(`${this.copy}${end}`, `${target}${end}`, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    using database = new DatabaseSync(target, { allowExtension: false, enableForeignKeyConstraints: false });
    database.exec("pragma trusted_schema = off; begin");
    change(database);
    database.exec("commit; pragma wal_checkpoint(truncate)");
    return target;
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

  /** Of a damaged database, none where a table could not be made again. */
  *rows(sql: string, ...parameters: (string | number)[]): Generator<Readonly<Record<string, unknown>>> {
    try {
      // It is taken away: the same words may be asked again before these rows end.
      const statement = this.#idle.get(sql) ?? this.#database.prepare(sql);
      this.#idle.delete(sql);
      // A number that is too large for one of JavaScript is no reason to stop.
      statement.setReadBigInts(true);
      for (const row of statement.iterate(...parameters)) yield withNumbers(row);
      if (this.#idle.size < STATEMENTS_MAX) this.#idle.set(sql, statement);
    } catch (error) {
      if (!isDamage(error) && this.damage.length === 0) throw error;
    }
  }

  [Symbol.dispose](): void {
    if (this.#database.isOpen) this.#database.close();
    removeDatabase(this.copy);
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
export const stateOf = (path: string, door: Door): string =>
  JSON.stringify([door.facts(path), door.facts(`${path}-wal`)]);

/** Copies the file and its log at one moment: again if the agent wrote in between. */
function copyOf(path: string, door: Door): Copied {
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
    if (stateOf(path, door) === before || tries === COPIES_MAX) return { copy, state: before };
  }
}

interface Opened {
  /** Null if SQLite cannot open it at all. */
  readonly database: DatabaseSync | null;
  readonly damage: readonly DatabaseDamage[];
}

function openChecked(path: string): Opened {
  try {
    const database = openReadOnly(path);
    try {
      return { database, damage: damageIn(database) };
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    return { database: null, damage: [{ kind: "damaged-database", words: messageOf(error) }] };
  }
}

function openReadOnly(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { allowExtension: false });
  try {
    database.exec("pragma trusted_schema = off; pragma query_only = on");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function damageIn(database: DatabaseSync): DatabaseDamage[] {
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

/** A new database needs about as much as the old one. */
function assertSpace(path: string, door: Door): void {
  const needed = 1.2 * ((door.facts(path)?.size ?? 0) + (door.facts(`${path}-wal`)?.size ?? 0));
  const { bavail, bsize } = statfsSync(door.temporary());
  if (bavail * bsize >= needed) return;
  const mebibytes = Math.ceil(needed / 2 ** 20);
  throw new Refused(path, `building it again needs ${mebibytes} MiB in ${door.temporary()}, and there is less`);
}

function removeDatabase(path: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
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
