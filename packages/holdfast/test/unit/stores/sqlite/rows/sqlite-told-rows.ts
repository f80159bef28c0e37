import { newestFirst } from "../../../../../src/stores/page.ts";
import { corrupt } from "../../../../../src/stores/sqlite/database/failure.ts";
import type { IndexEntry, Rows } from "../../../../../src/stores/sqlite/rows/rows.ts";
import { type SessionRow, sessionOf, type TableRow } from "../../../../../src/stores/sqlite/rows/session-row.ts";
import { AT, type LineMembers, line, withoutNewline } from "../../../journal/journals.ts";

export interface ToldSegment {
  readonly number: number;
  readonly epoch: number;
  readonly first: number;
}

/** What a database says, each part for itself: as it is when some of them are damaged. */
export class ToldRows {
  readonly table = new Map<number, TableRow>();
  readonly byId: IndexEntry[] = [];
  readonly byTime: IndexEntry[] = [];
  readonly lines = new Map<number, Map<number, Buffer>>();
  readonly segments = new Map<number, ToldSegment[]>();
  readonly openKeys = new Set<number>();
  /** Calls that meet a damaged page: at once, or after everything else if they walk. */
  readonly damaged = new Set<string>();
  /** The table and its indexes agree, as far as counting shows. */
  sound = true;
  /** Calls that read more than one row. */
  readonly walks: string[] = [];

  get rows(): Rows {
    return this as unknown as Rows;
  }

  /** A session that is as it should be, with these records after its header. */
  add(key: number, id: string, records: readonly LineMembers[] = [{}], row: Partial<TableRow> = {}): void {
    const head = records.length + 1;
    const written = { key, id, at: AT, written: null, head, closed: false, summary: {}, isTrashed: false, ...row };
    this.table.set(key, written);
    this.byId.push({ key, id, at: null });
    this.byTime.push({ key, id, at: written.at });
    this.segments.set(key, [{ number: 1, epoch: 1, first: 1 }]);
    if (!written.closed) this.openKeys.add(key);
    this.setLine(key, 1, { kind: "segment", session: id, segment: 1, epoch: 1 });
    for (const [i, record] of records.entries()) this.setLine(key, i + 2, record);
  }

  setLine(key: number, seq: number, members: LineMembers | null): void {
    const lines = this.lines.get(key) ?? new Map<number, Buffer>();
    this.lines.set(key, lines);
    lines.set(seq, members ? withoutNewline(line(seq, members)) : Buffer.from("rot"));
  }

  setRow(key: number, row: Partial<TableRow>): void {
    this.table.set(key, { ...this.table.get(key)!, ...row });
  }

  /** Removes a session from an index. */
  drop(index: IndexEntry[], key: number): void {
    index.splice(0, index.length, ...index.filter((entry) => entry.key !== key));
  }

  keyOf = (id: string): number | null => this.#read("keyOf", () => this.byId.find((one) => one.id === id)?.key ?? null);
  tableRow = (key: number): TableRow | null => this.#read("tableRow", () => this.table.get(key) ?? null);
  isTimed = (key: number, at: string, id: string): boolean =>
    this.#read("isTimed", () => this.byTime.some((one) => one.key === key && one.at === at && one.id === id));
  isOpen = (key: number): boolean => this.#read("isOpen", () => this.openKeys.has(key));
  readLine = (key: number, seq: number): Buffer | null =>
    this.#read("readLine", () => this.lines.get(key)?.get(seq) ?? null);
  readSegments = (key: number): ToldSegment[] => this.#read("readSegments", () => this.segments.get(key) ?? []);
  newestSeq = (key: number): number =>
    this.#read("newestSeq", () => Math.max(0, ...(this.lines.get(key)?.keys() ?? [])));
  readLines = (key: number, from: number, to: number): { lines: { seq: number; bytes: Buffer }[]; end: boolean } =>
    this.#read("readLines", () => ({
      lines: [...(this.lines.get(key) ?? [])]
        .filter(([seq]) => seq >= from && seq <= to)
        .sort(([a], [b]) => a - b)
        .map(([seq, bytes]) => ({ seq, bytes })),
      end: true,
    }));
  linesAround = (): Iterable<never> => [];

  isSound = (): boolean => this.#read("isSound", () => this.sound);
  open = (): TableRow[] => this.#read("open", () => [...this.openKeys].map((key) => this.table.get(key)!));
  unsettled = (): TableRow[] =>
    this.#read("unsettled", () => this.open().filter(({ key, head }) => this.newestSeq(key) > (head ?? 0)));
  /** Newest first, as the index by time says. */
  listed = function* (this: ToldRows, stamp: string, id: string): Generator<SessionRow | null> {
    const entries = this.byTime.filter((one) => newestFirst(one as never, { at: stamp, id }) > 0);
    for (const { key } of entries.sort((a, b) => newestFirst(a as never, b as never))) {
      this.walks.push(`listed ${key}`);
      const row = this.table.get(key);
      yield row?.isTrashed === false ? sessionOf(row) : null;
    }
    if (this.damaged.has("listed")) throw corrupt("listed");
  };

  tableRows = (id: string | null): Iterable<TableRow> =>
    this.#walk("tableRows", () => [...this.table.values()].filter((row) => id === null || row.id === id));
  entriesById = (id: string | null): Iterable<IndexEntry> =>
    this.#walk("entriesById", () => this.byId.filter((one) => id === null || one.id === id));
  entriesByTime = (id: string | null): Iterable<IndexEntry> =>
    this.#walk("entriesByTime", () => this.byTime.filter((one) => id === null || one.id === id));

  #read<T>(call: string, read: () => T): T {
    if (this.damaged.has(call)) throw corrupt(call);
    return read();
  }

  *#walk<T>(call: string, read: () => readonly T[]): Generator<T> {
    this.walks.push(call);
    yield* read();
    if (this.damaged.has(call)) throw corrupt(call);
  }
}
