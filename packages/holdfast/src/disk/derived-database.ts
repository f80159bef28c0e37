import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { crc32 } from "node:zlib";
import { hasSchema, makeDatabaseFile } from "./database-file.ts";
import type { Disk, DiskStat } from "./disk.ts";
import { tolerate } from "./failure.ts";
import { assertNotInWorker } from "./worker.ts";

export interface DerivedSchema {
  readonly sql: string;
  /** Positive. Any other one, and other tables, are refused. */
  readonly version: number;
}

export interface DerivedOptions {
  /** How long SQLite blocks this process while another one has the file locked. Default 0. */
  readonly timeoutMs?: number;
  /**
   * It must be right after a power cut, too: nothing else shows what is missing in it. Otherwise it may lack what was
   * written last, and only has to be sound.
   */
  readonly survivesPowerCut?: boolean;
}

interface OpenFile {
  readonly disk: Disk;
  readonly path: string;
  readonly identity: DiskStat;
}

/**
 * A database of derived content that several processes use, without shared memory and without files beside it: those
 * are found by name, and may be those of a database that was deleted. SQLite keeps what it needs for a rollback in the
 * memory of the writer. If the writer is killed in the middle of a commit, the file is torn, so a mark (a negative
 * `user_version`: one write of one page) is in the file from before the commit until after it. The writer has the file
 * locked for as long: whoever can read the mark knows that the writer is dead, and the database is built again.
 *
 * SQLite does not sync the file. `application_id` says in which boot it was written to since it was last synced: in any
 * other boot, it is built again. Where the system has no name for a boot, SQLite syncs every commit. One that need not
 * survive a power cut is never synced; in another boot, SQLite checks all of it before it is used.
 */
export class DerivedDatabase {
  readonly sqlite: DatabaseSync;
  readonly #state: StatementSync;
  readonly #file: OpenFile | null;
  readonly #version: number;
  /** 0 if it is not noted. */
  readonly #boot: number;
  readonly #isSynced: boolean;
  #isSyncDue = false;
  #isSound = false;

  private constructor(sqlite: DatabaseSync, file: OpenFile | null, version: number, boot = 0, isSynced = false) {
    this.sqlite = sqlite;
    this.#state = sqlite.prepare("SELECT user_version, application_id FROM pragma_user_version, pragma_application_id");
    this.#file = file;
    this.#version = version;
    this.#boot = boot;
    this.#isSynced = isSynced;
  }

  static inMemory({ sql, version }: DerivedSchema): DerivedDatabase {
    assertNotInWorker("a full-text index");
    const sqlite = new DatabaseSync(":memory:");
    sqlite.exec(`${sql}; PRAGMA user_version=${version}`);
    return new DerivedDatabase(sqlite, null, version);
  }

  /** Creates it if missing. Throws errors of SQLite and of the disk; EINVAL if it must be built again. */
  static open(disk: Disk, path: string, schema: DerivedSchema, options: DerivedOptions = {}): DerivedDatabase {
    const file = { disk, path, identity: makeDatabaseFile(disk, path) };
    // `mode=rw`: if the file has disappeared, SQLite must not create one with its own mode.
    const url = pathToFileURL(path);
    url.searchParams.set("mode", "rw");
    let sqlite: DatabaseSync | null = null;
    try {
      sqlite = new DatabaseSync(url, { timeout: options.timeoutMs ?? 0 });
      const { survivesPowerCut = false } = options;
      const bootId = bootIdOf(disk, path);
      const boot = bootId ? crc32(bootId) >>> 1 || 1 : 0;
      // Locked while it is opened: a file that claims to have a log would get shared memory otherwise.
      sqlite.exec("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=MEMORY");
      if (pragmaOf(sqlite, "journal_mode") !== "memory") throw unusable("it has a log");
      sqlite.exec(
        `PRAGMA synchronous=${survivesPowerCut && bootId === null ? "NORMAL" : "OFF"}; PRAGMA locking_mode=NORMAL`,
      );
      const isNew = sqlite.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()?.["tables"] === 0;
      const database = new DerivedDatabase(sqlite, file, schema.version, boot, survivesPowerCut);
      if (isNew && pragmaOf(sqlite, "user_version") === 0) database.#make(schema);
      // First: checking whether another schema is sound could take forever.
      if (!hasSchema(sqlite, schema.sql)) throw unusable("another schema");
      database.read(() => undefined);
      if (!database.isInPlace()) throw replaced(path);
      return database;
    } catch (error) {
      sqlite?.close();
      throw isInPlace(file) ? error : replaced(path, error);
    }
  }

  get isFile(): boolean {
    return this.#file !== null;
  }

  /** Does the name still refer to the open file? Someone may have deleted the file: it is derived (C22). */
  isInPlace(): boolean {
    return this.#file === null || isInPlace(this.#file);
  }

  /** Runs `work` as one read, or as a part of the transaction that is under way. Throws SQLite's errors, EINVAL. */
  read<T>(work: () => T): T {
    const { sqlite } = this;
    if (sqlite.isTransaction) return work();
    sqlite.exec("BEGIN");
    try {
      this.#assertWhole();
      return work();
    } finally {
      if (sqlite.isTransaction) sqlite.exec("COMMIT");
    }
  }

  /** All or nothing. Throws SQLite's errors, EINVAL. */
  write<T>(work: () => T): T {
    const { sqlite } = this;
    sqlite.exec("BEGIN EXCLUSIVE");
    try {
      this.#assertWhole();
    } catch (error) {
      sqlite.exec("ROLLBACK");
      throw error;
    }
    return this.#marked(work);
  }

  #make({ sql }: DerivedSchema): void {
    this.sqlite.exec("BEGIN EXCLUSIVE");
    // Another process may have created it first.
    if (pragmaOf(this.sqlite, "user_version") === 0) this.#marked(() => this.sqlite.exec(sql));
    else this.sqlite.exec("ROLLBACK");
  }

  /** Begins inside a transaction that has the file locked, and has written nothing. */
  #marked<T>(work: () => T): T {
    const { sqlite } = this;
    const mark = `PRAGMA user_version=${-this.#version}`;
    try {
      const isNoted = this.#boot === 0 || pragmaOf(sqlite, "application_id") === this.#boot;
      // The lock stays over the commits that follow.
      sqlite.exec(`PRAGMA locking_mode=EXCLUSIVE; ${mark}; PRAGMA application_id=${this.#boot}; COMMIT`);
      // On the disk before anything that a power cut may tear.
      if (!isNoted && this.#isSynced) sqlite.exec(`PRAGMA synchronous=NORMAL; ${mark}; PRAGMA synchronous=OFF`);
      this.#isSyncDue = this.#isSynced && this.#boot !== 0;
      sqlite.exec("BEGIN");
      const result = work();
      sqlite.exec("COMMIT");
      return result;
    } finally {
      // A full disk and I/O errors end the transaction by themselves.
      if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
      // The lock ends with this commit. If any of this fails, the mark stays.
      sqlite.exec(`PRAGMA locking_mode=NORMAL; PRAGMA user_version=${this.#version}`);
    }
  }

  /** Syncs what was written, so that the next boot can use it. Throws SQLite's errors. */
  close(): void {
    if (!this.sqlite.isOpen) return;
    try {
      if (this.#isSyncDue && this.isInPlace()) this.#settle();
    } finally {
      this.sqlite.close();
    }
  }

  #settle(): void {
    const { sqlite } = this;
    const same = `PRAGMA user_version=${this.#version}`;
    sqlite.exec("BEGIN EXCLUSIVE");
    try {
      this.#assertWhole();
      sqlite.exec("PRAGMA locking_mode=EXCLUSIVE; COMMIT");
      // A commit that changes nothing syncs everything that is in the file, whoever has written it.
      sqlite.exec(`PRAGMA synchronous=NORMAL; ${same}; PRAGMA synchronous=OFF; PRAGMA application_id=0`);
    } finally {
      if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
    }
  }

  #assertWhole(): void {
    const { user_version: version, application_id: written } = this.#state.get()!;
    if (version !== this.#version) throw unusable(version === -this.#version ? "its writer died" : "another schema");
    if (this.#boot === 0 || written === 0 || written === this.#boot || this.#isSound) return;
    // A torn page can be a page of before: only all of them together show it.
    this.#isSound = !this.#isSynced && pragmaOf(this.sqlite, "integrity_check") === "ok";
    if (!this.#isSound) throw unusable("a power cut may have torn it");
  }
}

/** Null also where the boots of several systems count. */
function bootIdOf(disk: Disk, path: string): string | null {
  return disk.networkKind(dirname(path)) === null ? disk.bootId() : null;
}

function isInPlace({ disk, path, identity }: OpenFile): boolean {
  const found = tolerate(() => disk.stat(path), null);
  return found?.dev === identity.dev && found.ino === identity.ino;
}

function pragmaOf(sqlite: DatabaseSync, name: string): unknown {
  return sqlite.prepare(`PRAGMA ${name}`).get()?.[name];
}

function unusable(why: string): Error {
  return Object.assign(new Error(`the derived database must be built again: ${why}`), { code: "EINVAL" });
}

/** The file was replaced or deleted while it was being opened. */
function replaced(path: string, cause?: unknown): Error {
  return Object.assign(new Error(`${path} was replaced`, { cause }), { code: "ESTALE" });
}
