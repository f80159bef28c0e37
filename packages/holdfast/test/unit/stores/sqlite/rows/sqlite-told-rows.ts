import { newestFirst } from "../../../../../src/stores/page.ts";
import { corrupt } from "../../../../../src/stores/sqlite/database/failure.ts";
import type { Rows } from "../../../../../src/stores/sqlite/rows/rows.ts";
import type { SessionRow } from "../../../../../src/stores/sqlite/rows/session-row.ts";
import { AT, type LineMembers, line, withoutNewline } from "../../../journal/journals.ts";

export interface ToldSegment {
  readonly number: number;
  readonly epoch: number;
  readonly first: number;
}

/** What a database says, each part for itself: as it is when some of them are damaged. */
export class ToldRows {
  readonly table = new Map<number, SessionRow>();
  readonly byId = new Map<string, number>();
  /** The keys in the indexes. */
  readonly indexed = new Set<number>();
  readonly lines = new Map<number, Map<number, Buffer>>();
  readonly segments = new Map<number, ToldSegment[]>();
  readonly openKeys = new Set<number>();
  /** Calls that meet a damaged page. */
  readonly damaged = new Set<string>();
  /** The table and its indexes agree. */
  isSound = true;
  /** Calls that read more than one row. */
  readonly walks: string[] = [];

  get rows(): Rows {
    return this as unknown as Rows;
  }

  /** A session that is as it should be, with these records after its header. */
  add(key: number, id: string, records: readonly LineMembers[] = [{}], row: Partial<SessionRow> = {}): void {
    const head = records.length + 1;
    const rest = { key, id, at: AT, stamp: row.at ?? AT, head, closed: false, summary: {}, isTrashed: false };
    const written: SessionRow = { ...rest, ...row };
    this.table.set(key, written);
    this.byId.set(id, key);
    this.indexed.add(key);
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

  setRow(key: number, row: Partial<SessionRow>): void {
    this.table.set(key, { ...this.table.get(key)!, ...row });
  }

  keyOf = (id: string): number | null => this.#read("keyOf", () => this.byId.get(id) ?? null);
  session = (key: number): SessionRow | null => this.#read("session", () => this.table.get(key) ?? null);
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
  indexedKeys = (): ReadonlySet<number> => this.#read("indexedKeys", () => this.indexed);
  open = (): SessionRow[] => this.#read("open", () => [...this.openKeys].map((key) => this.table.get(key)!));
  sessions = (): SessionRow[] => {
    this.walks.push("sessions");
    return this.#read("sessions", () => [...this.table.values()]);
  };

  /** Newest first, as the index by time says. */
  *listed(stamp: string, id: string): Generator<SessionRow> {
    const rows = [...this.table.values()].filter((one) => newestFirst(one, { at: stamp, id }) > 0);
    for (const row of rows.sort(newestFirst)) {
      this.walks.push(`listed ${row.key}`);
      yield row;
    }
  }

  #read<T>(call: string, read: () => T): T {
    if (this.damaged.has(call)) throw corrupt(call);
    return read();
  }
}
