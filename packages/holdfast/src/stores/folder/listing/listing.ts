import { sep } from "node:path";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { diskFailure, isGeneral } from "../../../disk/failure.ts";
import { type ErrorCode, errnoOf, isHoldfastError } from "../../../errors.ts";
import type { Listed, ListOptions, Summariser } from "../../../journal/contract.ts";
import { isId } from "../../../journal/id.ts";
import type { Ledger } from "../../../journal/ledger.ts";
import { stampOf } from "../../../journal/order.ts";
import { newestFirst, pageOf } from "../../page.ts";
import type { SegmentWriter } from "../writer.ts";
import type { Catalogue } from "./catalogue.ts";
import { isFresh, type Row, readRow } from "./summary.ts";

/**
 * Lists the sessions of a folder, from the catalogue where that is right, from the ends of the files where it is not
 * (S20).
 */
export class Listing {
  readonly #disk: Disk;
  readonly #sessions: string;
  readonly #catalogue: Catalogue | null;
  readonly #summariser: Summariser | undefined;
  /** `newest` has looked at all sessions. */
  #hasLooked = false;
  /** The rows of the last list in their order, while nothing has changed. */
  #order: { readonly of: Map<string, Row>; readonly rows: readonly Row[] } | null = null;

  constructor(disk: Disk, sessions: string, catalogue: Catalogue | null, summariser: Summariser | undefined) {
    this.#disk = disk;
    this.#sessions = sessions;
    this.#catalogue = catalogue;
    this.#summariser = summariser;
  }

  list(options: ListOptions): { readonly sessions: readonly Listed[]; readonly next?: string } {
    return pageOf(this.#rows(), options);
  }

  /**
   * The session has ended in order: its row is known without reading. If its file cannot be looked at now, a list will.
   */
  closed(id: string, writer: SegmentWriter, { at, stamp, head, row: summary }: Ledger): void {
    const stat = statOf(this.#disk, writer.path);
    if (!stat) return;
    this.#order = null;
    const { mtimeMs } = stat;
    this.#catalogue?.put([
      { id, segment: writer.segment, size: writer.size, mtimeMs, at, stamp, head, closed: true, summary },
    ]);
  }

  /**
   * The newest stamp of all sessions, so that a new writer comes behind it. Sessions whose writers died are in no
   * catalogue: so the first look is at all of them, once. Later ones ask the catalogue, which hears of those that other
   * processes have closed or listed.
   */
  newest(): string | undefined {
    if (this.#hasLooked) return this.#catalogue?.newest();
    this.#hasLooked = true;
    try {
      return this.#rows()[0]?.stamp;
    } catch (error) {
      // A store that cannot be listed can be written to all the same: then the clock alone decides.
      if (!isHoldfastError(error) && errnoOf(error) === undefined) throw error;
      return this.#catalogue?.newest();
    }
  }

  /** Sessions came by other ways than a writer. */
  lookAgain(): void {
    this.#hasLooked = false;
  }

  /** Newest first. */
  #rows(): readonly Row[] {
    const known = this.#catalogue?.load() ?? new Map<string, Row>();
    const changed: Row[] = [];
    // A list of ten thousand sessions is ten thousand stats: what stands beside each of them here is as short as it can
    // be.
    const before = this.#sessions + sep;
    const names = this.#disk.list(this.#sessions);
    const gone: string[] = [];
    /** Shown, and not kept. */
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
        // Of this one alone: the others are listed (P9).
        passing.push(unreadableRow(id, row, before + id, error));
      }
    }
    if (seen < known.size) {
      const there = new Set(names);
      for (const id of known.keys()) if (!there.has(id)) gone.push(id);
    }
    const isSame = changed.length === 0 && gone.length === 0 && passing.length === 0;
    if (isSame && this.#order?.of === known) return this.#order.rows;
    this.#catalogue?.put(changed, gone);
    for (const row of changed) known.set(row.id, row);
    for (const id of gone) known.delete(id);
    const hidden = new Set(passing.map(({ id }) => id));
    const rows = [...[...known.values()].filter(({ id }) => !hidden.has(id)), ...passing].sort(newestFirst);
    this.#order = passing.length === 0 ? { of: known, rows } : null;
    return rows;
  }
}

/** With what was known of it before, so that it stays where it was in the list. */
function unreadableRow(id: string, known: Row | undefined, path: string, error: unknown): Row {
  if (isGeneral(error)) throw diskFailure(error, "list the sessions", path, "Nothing that was there is affected.");
  const { code, message } = failureOf(error, path);
  return { ...(known ?? { ...UNKNOWN, id }), unreadable: { code, message } };
}

function failureOf(error: unknown, path: string): { readonly code: ErrorCode; readonly message: string } {
  if (isHoldfastError(error)) return error;
  const errno = errnoOf(error);
  // Those of Node itself, such as a text that is too long, are none of the disk's.
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
  try {
    return disk.stat(path);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return null;
  }
}
