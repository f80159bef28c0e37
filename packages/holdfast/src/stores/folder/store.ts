import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Disk } from "../../disk/disk.ts";
import { diskFailure, isForbidden } from "../../disk/failure.ts";
import { assertStorePlace, notAFolder } from "../../disk/file-rules.ts";
import { makeFolders, syncNames } from "../../disk/folders.ts";
import { nodeDisk } from "../../disk/node-disk.ts";
import { assertNotInWorker } from "../../disk/worker.ts";
import { errnoOf, HoldfastError } from "../../errors.ts";
import type * as contract from "../../journal/contract.ts";
import type { VerbatimLine } from "../../journal/contract.ts";
import { assertId } from "../../journal/id.ts";
import type { Ledger } from "../../journal/ledger.ts";
import { segmentRecord } from "../../journal/lifecycle.ts";
import type { JournalRecord, Json, NewRecord } from "../../journal/record.ts";
import { sessionExists, sessionNotFound } from "../../journal/refusals.ts";
import { judgeEnd } from "../../journal/verification.ts";
import { assertPath } from "../address.ts";
import { type Lease, Leases } from "../lease.ts";
import type { ListPage } from "../page.ts";
import { StoreBase, type StoreBaseOptions } from "../store-base.ts";
import { warningsOf } from "../warnings.ts";
import { adoptSession } from "./care/adopt.ts";
import { type HealthyEnd, heal, openEpoch, prepare, setTailsAside } from "./care/heal.ts";
import { packSegment } from "./care/pack.ts";
import { collectGarbage, listTrash, moveToTrash, takeFromTrash } from "./care/trash.ts";
import { replaced } from "./files/claim.ts";
import { createAtomically } from "./files/create-atomically.ts";
import { readHistory } from "./files/history.ts";
import { type EpochFiles, readEpoch, verifySession } from "./files/read-epoch.ts";
import { chainSegments, listSegments, segmentName } from "./files/segment.ts";
import { followSession } from "./follow.ts";
import { FolderJournal, type JournalParts } from "./journal.ts";
import { Catalogue } from "./listing/catalogue.ts";
import { Listing } from "./listing/listing.ts";
import { readRow } from "./listing/row-from-files.ts";
import { type SegmentEnd, SegmentWriter } from "./writer.ts";

export interface FolderStoreOptions extends StoreBaseOptions {
  /** The size at which a new segment is started. Default 64 MiB, at most 256 MiB. */
  readonly segmentBytesMax?: number;
  /** False: keep no derived files. Without `catalog.sqlite`, lists are answered from the ends of the files. */
  readonly catalogue?: false;
  /** The disk to use instead of the real one. */
  readonly disk?: Disk;
}

const SEGMENT_BYTES = 64 * 1024 * 1024;
/**
 * With the first records of an epoch before it and a unit after it, a segment stays within the readable size
 * (SEGMENT_BYTES_MAX).
 */
const SEGMENT_BYTES_LIMIT = 256 * 1024 * 1024;

/**
 * Opens a folder of sessions, and creates it if missing. Throws STORE_FORBIDDEN, STORE_FULL, STORE_IO, PATH_UNSAFE, and
 * NOT_SUPPORTED where there is no disk.
 */
export async function openFolderStore(root: string, options: FolderStoreOptions = {}): Promise<contract.JournalStore> {
  assertPath(root, "folder");
  assertNotInWorker("a store in a folder");
  return new FolderStore(resolve(root), options);
}

class FolderStore extends StoreBase<FolderStoreOptions, FolderJournal> implements contract.JournalStore {
  readonly url: string;
  readonly capabilities: contract.Capabilities = {
    durability: "power",
    lease: "kernel",
    sync: true,
    shared: true,
    pack: true,
  };
  readonly warnings: readonly string[];
  readonly searchFile: string | null;
  readonly #root: string;
  readonly #sessions: string;
  readonly #trash: string;
  readonly #incoming: string;
  readonly #disk: Disk;
  readonly #leases: Leases;
  readonly #catalogue: Catalogue | null;
  readonly #listing: Listing;
  /** The folders on the path to the store that it had to create. */
  readonly #made: readonly string[];
  #anchored = false;

  constructor(root: string, options: FolderStoreOptions) {
    super(options);
    this.url = pathToFileURL(root).href;
    this.#root = root;
    this.#sessions = join(root, "sessions");
    this.#trash = join(root, "trash");
    this.#incoming = join(root, "incoming");
    this.#disk = options.disk ?? nodeDisk;
    this.#made = this.#makeFolders();
    this.#leases = Leases.inRoot(this.#disk, root, options.clock);
    this.searchFile = options.catalogue === false ? null : join(root, "search.sqlite");
    this.#catalogue = options.catalogue === false ? null : new Catalogue(this.#disk, join(root, "catalog.sqlite"));
    this.#listing = new Listing({
      disk: this.#disk,
      sessions: this.#sessions,
      catalogue: this.#catalogue,
      summariser: options.summariser,
    });
    this.warnings = this.#doing("check the store", root, () => warningsOf(this.#disk, root));
  }

  async create(
    id: string,
    records: readonly NewRecord[],
    options: contract.WriterOptions = {},
  ): Promise<contract.Journal> {
    const folder = this.#free(id);
    const ledger = this.#ledger();
    const prepared = ledger.prepareSegment([segmentRecord({ session: id, segment: 1, epoch: 1 }), ...records]);
    const bytes = Buffer.from(prepared.bytes);
    return this.#withLease(id, options, (lease) => {
      this.#doing("create a session", folder, () => {
        this.#anchor();
        this.#disk.makeFolder(folder);
        if (listSegments(this.#disk, folder).length > 0) throw sessionExists(id);
        setTailsAside(this.#disk, folder, 1);
        createAtomically(this.#disk, folder, segmentName(1), (put) => put(bytes), { unlessThere: true });
        // The folder's own name last: until now it is a folder without a segment, which is not a session (S18).
        this.#disk.syncFolder(this.#sessions);
        ledger.commit(prepared);
        ledger.setDurable(prepared.last);
      });
      const opened = this.opened(options, { unclean: false, cutBytes: 0 });
      const begin = { opened, beforeFirst: undefined, startSegment: false, created: true };
      const place = { folder, session: id, segment: 1, epoch: 1, size: bytes.length };
      return this.#journal(id, ledger, lease, place, begin);
    });
  }

  async open(id: string, options: contract.WriterOptions = {}): Promise<contract.Opened> {
    const folder = this.#existing(id);
    return this.#withLease(id, options, async (lease) => {
      const found = await this.#reading(id, folder, () => openEpoch(this.#disk, folder, id, lease.lastClose));
      if (!found) throw sessionNotFound(id);
      const { epoch, claim } = found;
      const ledger = this.#ledger();
      for (const record of epoch.records) ledger.absorb(record);
      ledger.continueAt(epoch.tail.next);
      const { last, first, size } = epoch;
      const healed = claim === null ? this.#goOn(folder, epoch, lease) : heal(this.#disk, folder, epoch);
      ledger.setDurable(healed.durable);
      // A writer killed while creating the session has left its name unsynced.
      this.#doing("make a session durable", this.#sessions, () => {
        this.#anchor();
        this.#disk.syncFolder(this.#sessions);
      });
      const { quarantine, beforeFirst, end } = healed;
      const recovery = quarantine === undefined ? epoch.recovery : { ...epoch.recovery, quarantine };
      const place = { folder, session: id, segment: last.number, epoch: first, size };
      const after = { segment: last.number, bytes: end };
      const opened = this.opened(options, epoch.recovery);
      const begin = { opened, beforeFirst, startSegment: claim !== null, created: false };
      const claimed = claim === null ? place : { ...place, claim: { number: claim, after } };
      const journal = this.#journal(id, ledger, lease, claimed, begin);
      return { id, journal, records: epoch.records, recovery };
    });
  }

  /**
   * Continues in the segment that the last writer closed. That writer writes nothing more, and of all writers that may
   * have opened the session since, only one takes its closing note.
   */
  #goOn(folder: string, { tail, size }: EpochFiles, lease: Lease): HealthyEnd {
    this.#doing("open a journal", folder, () => prepare(this.#disk, folder));
    const beforeFirst = () => {
      if (!lease.takeClose()) throw replaced(folder);
    };
    return { durable: tail.next - 1, end: size, beforeFirst };
  }

  async read(id: string): Promise<contract.Snapshot> {
    const folder = this.#folderOf(id);
    const epoch = await this.#reading(id, folder, () => readEpoch(this.#disk, folder));
    if (!epoch) throw sessionNotFound(id);
    const { recovery } = await judgeEnd(epoch.recovery, () => this.#leases.holder(id) !== null);
    return { id, records: epoch.records, recovery };
  }

  async *history(id: string, from = 1): AsyncGenerator<JournalRecord> {
    const folder = this.#existing(id);
    yield* this.#worded("read a session", folder, readHistory(this.#disk, folder, from));
  }

  async *follow(id: string, options: contract.FollowOptions = {}): AsyncGenerator<JournalRecord> {
    const folder = this.#existing(id);
    const source = { disk: this.#disk, id, folder, live: () => this.journals.get(id) };
    const following = followSession(source, { ...options, signal: this.untilClosed(options) });
    yield* this.#worded("follow a session", folder, following);
  }

  async has(id: string): Promise<boolean> {
    return this.#isThere(this.#folderOf(id));
  }

  async holder(id: string): Promise<contract.Holder | null> {
    this.#folderOf(id);
    return this.#leases.holder(id);
  }

  async list(options: contract.ListOptions = {}): Promise<ListPage> {
    this.assertOpen();
    return this.#doing("list the sessions", this.#sessions, () => this.#listing.list(options));
  }

  async delete(id: string): Promise<void> {
    const folder = this.#existing(id);
    await this.#underLease(id, () => {
      this.#existing(id);
      try {
        this.#anchor();
        moveToTrash(this.#disk, this.#sessions, this.#trash, id, this.now());
      } catch (error) {
        throw diskFailure(error, "delete a session", folder, "It is complete, in its place or in the trash.");
      }
    });
  }

  async trashed(): Promise<readonly contract.Trashed[]> {
    this.assertOpen();
    const { summariser } = this.options;
    return this.#doing("list the trash", this.#trash, () =>
      listTrash(this.#disk, this.#sessions, this.#trash).map(({ id, folder, trashedMs }) => {
        const trashedAt = new Date(trashedMs).toISOString();
        return { id, trashedAt, summary: summaryIn(this.#disk, folder, id, summariser) };
      }),
    );
  }

  async restore(id: string): Promise<void> {
    const folder = this.#free(id);
    await this.#underLease(id, () => {
      try {
        this.#anchor();
        takeFromTrash(this.#disk, this.#sessions, this.#trash, id);
        this.#listing.lookAgain();
      } catch (error) {
        throw diskFailure(error, "restore a session", folder, "It is complete, in its place or in the trash.");
      }
    });
  }

  async verify(id: string): Promise<contract.Verification> {
    const folder = this.#folderOf(id);
    const isHeld = () => this.#leases.holder(id) !== null;
    const found = await this.#reading(id, folder, () => verifySession(this.#disk, folder, id, isHeld));
    if (!found) throw sessionNotFound(id);
    return found;
  }

  async pack(
    id: string,
  ): Promise<{ readonly segments: number; readonly bytesBefore: number; readonly bytesAfter: number }> {
    const folder = this.#existing(id);
    return this.#underLease(id, async () => {
      const epoch = await this.#reading(id, folder, () => readEpoch(this.#disk, folder));
      const chain = await this.#reading(id, folder, () => chainSegments(this.#disk, folder));
      const packed = { segments: 0, bytesBefore: 0, bytesAfter: 0 };
      this.#doing("pack a session", folder, () => {
        for (const segment of chain) {
          if (segment.packed || segment.number >= (epoch?.first ?? 0)) continue;
          const before = this.#disk.stat(join(folder, segment.name))?.size ?? 0;
          const after = packSegment(this.#disk, folder, segment);
          if (after === null) continue;
          packed.bytesBefore += before;
          packed.bytesAfter += after;
          packed.segments++;
        }
      });
      return packed;
    });
  }

  async adopt(id: string, lines: AsyncIterable<readonly VerbatimLine[]>): Promise<void> {
    const folder = this.#free(id);
    await this.#underLease(id, async () => {
      this.#free(id);
      try {
        this.#anchor();
        const place = { disk: this.#disk, incoming: this.#incoming, sessions: this.#sessions, id };
        await adoptSession(place, lines);
        this.#listing.lookAgain();
      } catch (error) {
        throw diskFailure(error, "adopt a session", folder, "Existing data is not affected.");
      }
    });
  }

  async gc(options: { readonly graceMs?: number } = {}): Promise<{ readonly removed: readonly string[] }> {
    this.assertOpen();
    const places = {
      disk: this.#disk,
      leases: this.#leases,
      sessions: this.#sessions,
      trash: this.#trash,
      incoming: this.#incoming,
    };
    return collectGarbage(places, this.now(), options.graceMs);
  }

  protected override async end(): Promise<void> {
    this.#catalogue?.close();
  }

  #journal(
    id: string,
    ledger: Ledger,
    lease: Lease,
    place: SegmentEnd,
    begin: Pick<JournalParts, "opened" | "beforeFirst" | "startSegment" | "created">,
  ): FolderJournal {
    this.assertOpen();
    const writer = this.#doing(
      "open a journal",
      place.folder,
      () => new SegmentWriter(this.#disk, ledger, lease, place),
    );
    const journal: FolderJournal = new FolderJournal({
      ...begin,
      id,
      ledger,
      writer,
      lease,
      durability: this.durability,
      segmentBytesMax: Math.min(this.options.segmentBytesMax ?? SEGMENT_BYTES, SEGMENT_BYTES_LIMIT),
      follow: (followOptions) => this.follow(id, followOptions),
      onClose: (isClosed) => {
        this.forget(journal);
        if (isClosed) this.#listing.closed(id, writer, ledger);
      },
    });
    this.journals.set(id, journal);
    return journal;
  }

  /** Keeps the lease for the result of `use`; releases it if that fails. */
  async #withLease<T>(id: string, options: contract.WriterOptions, use: (lease: Lease) => T | Promise<T>): Promise<T> {
    const lease = await this.#leases.take(id, this.appOf(options));
    try {
      this.assertOpen();
      return await use(lease);
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  async #underLease<T>(id: string, use: () => T | Promise<T>): Promise<T> {
    const lease = await this.#leases.take(id, this.appOf());
    try {
      return await use();
    } finally {
      lease.release();
    }
  }

  /** For a writer, whose session sorts before all others in lists from its first record on, whatever the clock says. */
  #ledger(): Ledger {
    this.clock.follow(this.#listing.newest());
    return this.ledger();
  }

  /** An id that is not a UUID never becomes a path, and a link in place of a session is not followed (C24). */
  #folderOf(id: string): string {
    this.assertOpen();
    assertId(id);
    const folder = join(this.#sessions, id);
    const stat = this.#doing("check a session", folder, () => this.#disk.stat(folder));
    if (stat && stat.kind !== "folder") throw notAFolder(folder, stat.kind);
    return folder;
  }

  #isThere(folder: string): boolean {
    return this.#doing(
      "check a session",
      folder,
      () => this.#disk.stat(folder) !== null && listSegments(this.#disk, folder).length > 0,
    );
  }

  /** The session's folder. Throws SESSION_NOT_FOUND. */
  #existing(id: string): string {
    const folder = this.#folderOf(id);
    if (!this.#isThere(folder)) throw sessionNotFound(id);
    return folder;
  }

  /** Where a session with this id will be. Throws SESSION_EXISTS. */
  #free(id: string): string {
    const folder = this.#folderOf(id);
    if (this.#isThere(folder)) throw sessionExists(id);
    return folder;
  }

  async #reading<T>(id: string, folder: string, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (!this.#doing("check a session", folder, () => this.#disk.stat(folder))) throw sessionNotFound(id);
      throw diskFailure(error, "read a session", folder, "Nothing was touched.");
    }
  }

  async *#worded<T>(what: string, path: string, from: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* from;
    } catch (error) {
      if (!this.#doing(what, path, () => this.#disk.stat(path))) throw sessionNotFound(basename(path));
      throw diskFailure(error, what, path, "Nothing was touched.");
    }
  }

  #doing<T>(what: string, path: string, run: () => T): T {
    try {
      return run();
    } catch (error) {
      throw diskFailure(error, what, path, "Existing data is not affected.");
    }
  }

  /** Syncs the store's own names, once: a session is durable only if the path to it is. */
  #anchor(): void {
    if (this.#anchored) return;
    syncNames(this.#disk, this.#root, this.#made);
    this.#anchored = true;
  }

  /** Returns those it created. */
  #makeFolders(): string[] {
    return this.#doing("open the store", this.#root, () => {
      // With a dot: if the name is a link, its target counts.
      for (const folder of [this.#root, this.#sessions, this.#trash, this.#incoming])
        assertStorePlace(folder, this.#disk.stat(`${folder}/.`));
      const made = makeFolders(this.#disk, this.#root);
      this.#disk.makeFolder(this.#sessions);
      try {
        this.#disk.makeFolder(this.#trash);
      } catch (error) {
        // A backup may contain only its sessions, on a read-only medium: it can still be read.
        if (!isForbidden(error)) throw error;
      }
      return made;
    });
  }
}

/** Null if it cannot be read: that is no reason to hide a session that can still be restored. */
function summaryIn(disk: Disk, folder: string, id: string, summariser: contract.Summariser | undefined): Json {
  try {
    return readRow(disk, folder, id, summariser)?.summary ?? null;
  } catch (error) {
    if (error instanceof HoldfastError || errnoOf(error) !== undefined) return null;
    throw error;
  }
}
