import { type Base, TEXT_SCHEMA } from "holdfast/internal";
import type { SessionFacts } from "./look.ts";

/** The rows of the list, beside the tables of the texts. */

export const SCHEMA: typeof TEXT_SCHEMA = {
  version: 1_000 + TEXT_SCHEMA.version,
  sql: `${TEXT_SCHEMA.sql};
  CREATE TABLE overview (key TEXT PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL,
    shared INTEGER NOT NULL, at INTEGER NOT NULL, fingerprint TEXT NOT NULL, whole INTEGER NOT NULL, facts TEXT NOT NULL) WITHOUT ROWID`,
};

/** A session as the index knows it. */
export interface SessionOverview extends SessionFacts {
  readonly key: string;
  readonly agent: string;
  readonly id: string;
  readonly path: string;
  /** Whether the file holds other sessions too. */
  readonly isShared: boolean;
  /** When it was changed last, as milliseconds since 1970. */
  readonly at: number;
}

export interface Mark {
  readonly agent: string;
  readonly fingerprint: string;
  readonly isWhole: boolean;
}

export class OverviewTable {
  readonly #database: NonNullable<Base["database"]>;

  constructor(base: Base) {
    this.#database = base.database!;
  }

  marks(): Map<string, Mark> {
    const rows = this.#all("SELECT key, agent, fingerprint, whole FROM overview");
    return new Map(
      rows.map(({ key, agent, fingerprint, whole }) => [
        String(key),
        { agent: String(agent), fingerprint: String(fingerprint), isWhole: whole === 1 },
      ]),
    );
  }

  mark(key: string): Mark | undefined {
    const [row] = this.#all("SELECT agent, fingerprint, whole FROM overview WHERE key = ?", key);
    return row && { agent: String(row["agent"]), fingerprint: String(row["fingerprint"]), isWhole: row["whole"] === 1 };
  }

  put(rows: readonly { readonly overview: SessionOverview; readonly mark: Mark }[]): void {
    this.#database.write(() => {
      // What another process has read whole meanwhile is not replaced by less.
      const put = this.#database.sqlite.prepare(`INSERT INTO overview VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET at = excluded.at, fingerprint = excluded.fingerprint, whole = excluded.whole, facts = excluded.facts
        WHERE excluded.whole OR NOT overview.whole OR excluded.fingerprint <> overview.fingerprint`);
      for (const { overview, mark } of rows) {
        const { key, agent, id, path, isShared, at, ...facts } = overview;
        const { fingerprint, isWhole } = mark;
        put.run(key, agent, id, path, isShared ? 1 : 0, at, fingerprint, isWhole ? 1 : 0, JSON.stringify(facts));
      }
    });
  }

  remove(keys: readonly string[]): void {
    this.#database.write(() => {
      const remove = this.#database.sqlite.prepare("DELETE FROM overview WHERE key = ?");
      for (const key of keys) remove.run(key);
    });
  }

  /** Newest first. */
  all(): SessionOverview[] {
    return this.#all("SELECT * FROM overview ORDER BY at DESC, key").map(overviewOf);
  }

  one(key: string): SessionOverview | null {
    const [row] = this.#all("SELECT * FROM overview WHERE key = ?", key);
    return row ? overviewOf(row) : null;
  }

  #all(sql: string, ...values: string[]): Record<string, unknown>[] {
    return this.#database.read(() => this.#database.sqlite.prepare(sql).all(...values));
  }
}

function overviewOf(row: Record<string, unknown>): SessionOverview {
  const { key, agent, session, path, shared, at, facts } = row;
  return {
    ...{ key: String(key), agent: String(agent), id: String(session), path: String(path) },
    ...{ isShared: shared === 1, at: Number(at) },
    ...(JSON.parse(String(facts)) as SessionFacts),
  };
}
