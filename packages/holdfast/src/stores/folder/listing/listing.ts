import { sep } from "node:path";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { diskFailure, isGeneral, tolerate } from "../../../disk/failure.ts";
import { type ErrorCode, errnoOf, isHoldfastError } from "../../../errors.ts";
import type { Listed, ListOptions, Summariser } from "../../../journal/contract.ts";
import { isId } from "../../../journal/id.ts";
import type { Ledger } from "../../../journal/ledger.ts";
import { stampOf } from "../../../journal/order.ts";
import type { Leases } from "../../lease.ts";
import { type ListPage, listCursor, newestFirst, pageOf, pageOfBatches, parseListCursor } from "../../page.ts";
import type { SegmentWriter } from "../writer.ts";
import type { Catalogue, Check } from "./catalogue.ts";
import { isFresh, type Row, readRow } from "./row-from-files.ts";

/**
 * For this long after every session was looked at, a list looks only at those that a writer has announced. It bounds
 * how long a change goes unnoticed that no version of Holdfast has made (decision 8).
 */
const TRUST_MS = 60 * 1000;
/** Two changes of a folder within this time may leave the same modification time: FAT counts in steps of 2 seconds. */
const MTIME_STEP_MS = 2000;
/** Looking at more of them one by one takes longer than looking at all. */
const UNSETTLED_MAX = 512;

const NONE: ReadonlyMap<string, Row> = new Map();

export interface ListingParts {
  readonly disk: Disk;
  /** The folder of the sessions. */
  readonly sessions: string;
  readonly leases: Leases;
  readonly catalogue: Catalogue | null;
  readonly summariser: Summariser | undefined;
  /** In milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Lists the sessions of a folder, from the catalogue where it is current, from the ends of the files where it is not
 * (S20).
 */
export class Listing {
  readonly #parts: ListingParts;
  readonly #disk: Disk;
  readonly #sessions: string;
  readonly #catalogue: Catalogue | null;
  readonly #summariser: Summariser | undefined;
  /** `newest` has read all sessions. */
  #hasLooked = false;
  /** The rows of the last list in order, while nothing has changed. */
  #order: { readonly of: Map<string, Row>; readonly rows: readonly Row[] } | null = null;
  #bootId: string | null = null;
  /** The last check holds, but more sessions are unsettled than are worth a look of their own. */
  #isHopeless = false;

  constructor(parts: ListingParts) {
    this.#parts = parts;
    this.#disk = parts.disk;
    this.#sessions = parts.sessions;
    this.#catalogue = parts.catalogue;
    this.#summariser = parts.summariser;
  }

  list(options: ListOptions): ListPage {
    const { visit, limit = Number.POSITIVE_INFINITY } = options;
    const after = options.after === undefined ? null : parseListCursor(options.after);
    const check = this.#recheck();
    let visited = 0;
    let last: Listed | null = null;
    const counted: ListOptions = !visit
      ? options
      : {
          ...options,
          visit: (listed) => {
            visited++;
            last = listed;
            visit(listed);
          },
        };
    // One more than asked for shows whether there is another page.
    const part = { after: after && { stamp: after.at, id: after.id }, limit: limit + 1 };
    const page = check && this.#catalogue?.inOrder(check, part, (batches) => pageOfBatches(batches, counted));
    if (page) return page;
    // If the catalogue failed on the way, the rest comes from the files.
    return pageOf(this.#rows(), last ? { ...options, after: listCursor(last), limit: limit - visited } : options);
  }

  /**
   * The session was closed: its row is known without reading. If its file cannot be read now, a list will read it.
   * Returns whether lists need not look at it.
   */
  closed(id: string, writer: SegmentWriter, { at, stamp, head, row: summary }: Ledger): boolean {
    const stat = statOf(this.#disk, writer.path);
    if (!stat || !this.#catalogue) return false;
    this.#order = null;
    const { mtimeMs } = stat;
    const row = { id, segment: writer.segment, size: writer.size, mtimeMs, at, stamp, head, closed: true, summary };
    return this.#catalogue.put([row]) && stat.size === row.size;
  }

  /**
   * The holder of the session's lease has moved or repacked its files. Returns whether lists need not look at it after
   * that.
   */
  settle(id: string): boolean {
    try {
      const row = readRow(this.#disk, this.#sessions + sep + id, id, this.#summariser);
      this.#order = null;
      if (!row) return this.#catalogue?.put([], [id]) ?? false;
      const isFinal = row.closed && !row.isPassing;
      return isFinal && isFresh(this.#disk, this.#sessions + sep + id, row) && (this.#catalogue?.put([row]) ?? false);
    } catch (error) {
      if (!isHoldfastError(error) && errnoOf(error) === undefined) throw error;
      return false;
    }
  }

  /** A writer could not announce itself: only the files tell what it changes. */
  distrust(): void {
    this.#catalogue?.forgetCheck();
  }

  /**
   * The newest stamp of all sessions, so that a new writer sorts after it. Sessions whose writers died are in no
   * catalogue, so the first call reads all sessions, once. Later calls ask the catalogue, which other processes update
   * when they close or list sessions.
   */
  newest(): string | undefined {
    if (this.#hasLooked) return this.#catalogue?.newest();
    this.#hasLooked = true;
    try {
      return this.#recheck() ? this.#catalogue?.newest() : this.#rows()[0]?.stamp;
    } catch (error) {
      // A store that cannot be listed can still be written to: then the clock alone decides.
      if (!isHoldfastError(error) && errnoOf(error) === undefined) throw error;
      return this.#catalogue?.newest();
    }
  }

  /** Sessions were added other than by a writer. */
  lookAgain(): void {
    this.#hasLooked = false;
  }

  /**
   * Brings the catalogue up to date by looking only at sessions that may have changed since all were looked at: those
   * that a writer has announced, and those that were not closed. Null if all have to be looked at (decision 8).
   */
  #recheck(): Check | null {
    const check = this.#lastCheck();
    this.#isHopeless = check?.isHopeless === true;
    if (!check || this.#isHopeless) return null;
    // Before any row is read: a writer stores its row, and only then takes its announcement back.
    const { leases: folder } = this.#parts;
    const leases = this.#stateOf(folder.folder);
    const unsettled = leases !== null && leases === check.leases ? check.unsettled : folder.unsettled();
    const notClosed = this.#catalogue?.notClosed();
    if (!unsettled || !notClosed) return null;
    const { at, bootId, sessions } = check;
    if (unsettled.length + notClosed.length > UNSETTLED_MAX) {
      this.#isHopeless = true;
      this.#catalogue?.putChecked(NONE, [], [], { at, bootId, sessions, isHopeless: true });
      return null;
    }
    const ids = new Set([...unsettled.filter(isId), ...notClosed]);
    const known = this.#catalogue?.rowsOf(ids);
    if (!known) return null;
    const changed: Row[] = [];
    const gone: string[] = [];
    for (const id of ids) {
      const row = known.get(id);
      try {
        const path = this.#sessions + sep + id;
        if (row && isFresh(this.#disk, path, row)) continue;
        const made = readRow(this.#disk, path, id, this.#summariser);
        if (made?.isPassing) return null;
        if (made) changed.push(made);
        else if (row) gone.push(id);
      } catch (error) {
        if (!isHoldfastError(error) && errnoOf(error) === undefined) throw error;
        return null;
      }
    }
    if (changed.length === 0 && gone.length === 0 && leases === (check.leases ?? null)) return check;
    const next = leases === null ? { at, bootId, sessions } : { at, bootId, sessions, leases, unsettled };
    return this.#catalogue?.putChecked(known, changed, gone, next) ? next : null;
  }

  /** The catalogue's last check of all sessions, if it still holds. */
  #lastCheck(): Check | null {
    const bootId = this.#currentBootId();
    const check = bootId !== null && this.#catalogue?.check();
    if (!check || check.bootId !== bootId) return null;
    const ageMs = this.#parts.now() - check.at;
    return ageMs >= 0 && ageMs < TRUST_MS && this.#stateOf(this.#sessions) === check.sessions ? check : null;
  }

  /** Null where no folder can tell that something in it has changed: on a network, or if boots have no name. */
  #currentBootId(): string | null {
    // Not kept if it could not be read: that may have been for a moment, without a free descriptor.
    if (this.#bootId === null && this.#catalogue && this.#disk.networkKind(this.#sessions) === null)
      this.#bootId = this.#disk.bootId();
    return this.#bootId;
  }

  /** Differs if a name in the folder has changed. Null if the next change might leave it as it is. */
  #stateOf(folder: string): string | null {
    const stat = this.#disk.stat(folder);
    if (!stat || stat.mtimeMs > this.#parts.now() - MTIME_STEP_MS) return null;
    return `${stat.dev}:${stat.ino}:${stat.mtimeMs}`;
  }

  /** Newest first. Looks at every session. */
  #rows(): readonly Row[] {
    const known = this.#catalogue?.load() ?? new Map<string, Row>();
    const check = this.#startCheck();
    const changed: Row[] = [];
    // A list of ten thousand sessions takes ten thousand stats, so the code around each is as short as possible.
    const before = this.#sessions + sep;
    const names = this.#disk.list(this.#sessions);
    const gone: string[] = [];
    /** Shown, but not stored. */
    const passing: Row[] = [];
    let seen = 0;
    for (const id of names) {
      const row = known.get(id);
      try {
        if (row) {
          seen++;
          if (isFresh(this.#disk, before + id, row)) continue;
        } else if (!isId(id)) continue;
        const made = readRow(this.#disk, before + id, id, this.#summariser);
        if (made?.isPassing) passing.push(made);
        else if (made) changed.push(made);
        else if (row) gone.push(id);
      } catch (error) {
        // Only this one fails: the others are listed (P9).
        passing.push(unreadableRow(id, row, before + id, error));
      }
    }
    if (seen < known.size) {
      const there = new Set(names);
      for (const id of known.keys()) if (!there.has(id)) gone.push(id);
    }
    const isSame = changed.length === 0 && gone.length === 0 && passing.length === 0;
    this.#catalogue?.putChecked(known, changed, gone, passing.length === 0 ? check : null);
    if (isSame && this.#order?.of === known) return this.#order.rows;
    for (const row of changed) known.set(row.id, row);
    for (const id of gone) known.delete(id);
    const hidden = new Set(passing.map(({ id }) => id));
    const rows = [...[...known.values()].filter(({ id }) => !hidden.has(id)), ...passing].sort(newestFirst);
    this.#order = passing.length === 0 ? { of: known, rows } : null;
    return rows;
  }

  /** What to store if every session turns out to be as the catalogue says. Before the first of them is looked at. */
  #startCheck(): Check | null {
    const bootId = this.#isHopeless ? null : this.#currentBootId();
    const sessions = bootId === null ? null : this.#stateOf(this.#sessions);
    return bootId === null || sessions === null ? null : { at: this.#parts.now(), bootId, sessions };
  }
}

/** Uses what was known before, so that the session keeps its place in the list. */
function unreadableRow(id: string, known: Row | undefined, path: string, error: unknown): Row {
  if (isGeneral(error)) throw diskFailure(error, "list the sessions", path, "Existing data is not affected.");
  const { code, message } = failureOf(error, path);
  return { ...(known ?? { ...UNKNOWN, id }), unreadable: { code, message } };
}

function failureOf(error: unknown, path: string): { readonly code: ErrorCode; readonly message: string } {
  if (isHoldfastError(error)) return error;
  const errno = errnoOf(error);
  // Node's own errors, such as a string that is too long, are not the disk's.
  if (errno !== undefined && !errno.startsWith("ERR_"))
    return diskFailure(error, "read a session", path, "Nothing was touched.");
  const message = `The session in ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}. Nothing was touched. Verify it.`;
  return { code: "JOURNAL_UNREADABLE", message };
}

const UNKNOWN: Omit<Row, "id"> = {
  ...{ segment: 0, size: 0, mtimeMs: 0, at: stampOf("", 0), stamp: stampOf("", 0), head: 0, closed: false },
  summary: null,
};

function statOf(disk: Disk, path: string): DiskStat | null {
  return tolerate(() => disk.stat(path), null);
}
