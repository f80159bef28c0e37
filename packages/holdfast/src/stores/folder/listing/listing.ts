import { sep } from "node:path";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { diskFailure, isGeneral, tolerate } from "../../../disk/failure.ts";
import { type ErrorCode, errnoOf, isHoldfastError } from "../../../errors.ts";
import type { ListOptions, Summariser } from "../../../journal/contract.ts";
import { isId } from "../../../journal/id.ts";
import type { Ledger } from "../../../journal/ledger.ts";
import { stampOf } from "../../../journal/order.ts";
import { type ListPage, newestFirst, pageOf } from "../../page.ts";
import type { SegmentWriter } from "../writer.ts";
import type { Catalogue } from "./catalogue.ts";
import { isFresh, type Row, readRow } from "./row-from-files.ts";

export interface ListingParts {
  readonly disk: Disk;
  /** The folder of the sessions. */
  readonly sessions: string;
  readonly catalogue: Catalogue | null;
  readonly summariser: Summariser | undefined;
}

/**
 * Lists the sessions of a folder, from the catalogue where it is current, from the ends of the files where it is not
 * (S20).
 */
export class Listing {
  readonly #disk: Disk;
  readonly #sessions: string;
  readonly #catalogue: Catalogue | null;
  readonly #summariser: Summariser | undefined;
  /** `newest` has read all sessions. */
  #hasLooked = false;

  constructor(parts: ListingParts) {
    this.#disk = parts.disk;
    this.#sessions = parts.sessions;
    this.#catalogue = parts.catalogue;
    this.#summariser = parts.summariser;
  }

  list(options: ListOptions): ListPage {
    return pageOf(this.#rows(), options);
  }

  /** The session was closed: its row is known without reading. If its file cannot be read now, a list will read it. */
  closed(id: string, writer: SegmentWriter, { at, stamp, head, row: summary }: Ledger): void {
    const stat = statOf(this.#disk, writer.path);
    if (!stat || !this.#catalogue) return;
    const { mtimeMs } = stat;
    const row = { id, segment: writer.segment, size: writer.size, mtimeMs, at, stamp, head, closed: true, summary };
    this.#catalogue.put([row], []);
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
      return this.#rows()[0]?.stamp;
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

  /** Newest first. Looks at every session. */
  #rows(): readonly Row[] {
    const known = this.#catalogue?.load() ?? new Map<string, Row>();
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
    this.#catalogue?.put(changed, gone);
    const rows = new Map(known);
    for (const row of [...changed, ...passing]) rows.set(row.id, row);
    for (const id of gone) rows.delete(id);
    return [...rows.values()].sort(newestFirst);
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
