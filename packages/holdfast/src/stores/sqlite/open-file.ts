import { hostname } from "node:os";
import type { Disk } from "../../disk/disk.ts";
import type { Holder } from "../../journal/contract.ts";
import { sessionBusy } from "../../journal/refusals.ts";
import { identity } from "../lease-note.ts";
import type { Database } from "./database/database.ts";
import { sqliteFailure } from "./database/failure.ts";
import { makeFile, type Opener, openDatabase } from "./database/open-database.ts";
import { Wal } from "./database/wal.ts";
import { Followers } from "./follow.ts";
import type { SqliteJournal } from "./journal.ts";

/** The right to use an open file: the caller releases it once. */
export interface SharedFile {
  readonly file: OpenFile;
  release(): Promise<void>;
}

interface Entry {
  readonly opening: Promise<OpenFile>;
  users: number;
  closing?: Promise<void>;
}

/** The files that are open here, by their identity: per Disk, because each simulates its own kernel. */
const entriesOf = new WeakMap<Disk, Map<string, Entry>>();

/**
 * A database file that is open in this process, and everything that its stores share: the same program may open it
 * several times. (Another thread may not: it knows nothing of this one.)
 */
export class OpenFile {
  readonly database: Database;
  readonly wal: Wal;
  readonly followers = new Followers();
  /** The open journals, by session. */
  readonly journals = new Map<string, SqliteJournal>();
  /** No other process can write, so a lease is an entry here. */
  readonly #holders = new Map<string, Holder>();

  private constructor(disk: Disk, database: Database) {
    this.database = database;
    this.wal = new Wal(disk, database, (error) => {
      for (const journal of [...this.journals.values()]) journal.fail(error);
    });
  }

  /** Opens the file, or shares it, and creates it if missing. Throws as `openDatabase`. */
  static async use(disk: Disk, path: string, opener: Opener): Promise<SharedFile> {
    const entries = entriesOf.get(disk) ?? new Map<string, Entry>();
    entriesOf.set(disk, entries);
    for (;;) {
      const key = identity(makeFile(disk, path));
      const known = entries.get(key);
      if (known?.closing) {
        // The caller that closes it gets its failure.
        await known.closing.catch(() => undefined);
        continue;
      }
      const entry: Entry = known ?? { opening: OpenFile.#open(disk, path, opener), users: 0 };
      entries.set(key, entry);
      entry.users++;
      try {
        const file = await entry.opening;
        return { file, release: () => OpenFile.#release(entries, key, entry, file) };
      } catch (error) {
        // Somebody else who waited for it may have begun again.
        if (entries.get(key) === entry) entries.delete(key);
        throw error;
      }
    }
  }

  static async #open(disk: Disk, path: string, opener: Opener): Promise<OpenFile> {
    const database = await openDatabase(disk, path, opener);
    try {
      return new OpenFile(disk, database);
    } catch (error) {
      database.close();
      throw sqliteFailure(error, "open the store", path, "Nothing was written to it.");
    }
  }

  static async #release(entries: Map<string, Entry>, key: string, entry: Entry, file: OpenFile): Promise<void> {
    if (--entry.users > 0) return;
    entry.closing = file.#close().finally(() => entries.delete(key));
    await entry.closing;
  }

  async #close(): Promise<void> {
    try {
      await this.wal.close();
    } catch (error) {
      throw sqliteFailure(error, "close the store", this.database.file, "Acknowledged records are safe.");
    } finally {
      // Otherwise this process would hold the file for as long as it lives.
      this.database.close();
    }
  }

  holder(id: string): Holder | null {
    return this.#holders.get(id) ?? null;
  }

  /** Takes the lease of a session. Returns a function that gives it back. Throws SESSION_BUSY. */
  lease(id: string, { app, since }: Opener): () => void {
    const taken = this.#holders.get(id);
    if (taken) throw sessionBusy(id, taken, true);
    const holder: Holder = { pid: process.pid, host: hostname(), app, since };
    this.#holders.set(id, holder);
    return () => {
      if (this.#holders.get(id) === holder) this.#holders.delete(id);
    };
  }
}
