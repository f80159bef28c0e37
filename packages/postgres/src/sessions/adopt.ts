import { randomUUID } from "node:crypto";
import { HoldfastError, newId } from "holdfast";
import { adoptedBatches, sessionExists } from "holdfast/internal";
import type { Ledger, VerbatimLine } from "holdfast/store";
import type { Database } from "../connection/database.ts";
import { isDuplicate } from "../failure.ts";
import { differs, jsonb } from "../listing/catalogue.ts";

const BATCH = { bytes: 1024 * 1024, lines: 1024 };
const REMOVE_ROWS = 5000;

/**
 * Creates a session with exactly these lines. Until it is complete, the session is in the trash with no head: nobody
 * sees it, and gc collects it if it is never finished. The last statement takes it out of the trash. Throws
 * SESSION_EXISTS, and database errors.
 */
export async function adoptSession(
  database: Database,
  id: string,
  ledger: Ledger,
  lines: AsyncIterable<readonly VerbatimLine[]>,
): Promise<void> {
  const { schema } = database;
  const what = "copy a session";
  await assertFree(database, id);
  await removeUnfinished(database, id);
  const attempt = randomUUID();
  const place = await begin(database, id, attempt);
  let count = 0;
  let closed = false;
  for await (const { lines: some, segments } of adoptedBatches(id, lines, ledger, BATCH)) {
    // Safe to repeat if the answer is lost: the same lines get the same seq. It writes only while this attempt owns the
    // place; otherwise its lines would be in the way of the next writer.
    await database.query(
      what,
      `WITH ${database.local}, ours AS (
        SELECT place FROM ${schema}.heads, power WHERE place = $1 AND owner = $7 AND trashed IS NOT NULL AND head = 0 FOR SHARE OF heads
      ),
      begun AS (
        INSERT INTO ${schema}.segments (place, number, epoch, first)
        SELECT ours.place, s.* FROM ours, unnest($4::integer[], $5::integer[], $6::bigint[]) AS s ON CONFLICT DO NOTHING
      )
      INSERT INTO ${schema}.lines (place, seq, line)
      SELECT ours.place, l.* FROM ours, unnest($2::bigint[], $3::text[]) AS l ON CONFLICT DO NOTHING`,
      [
        place,
        some.map(({ record }) => record.seq),
        some.map(({ bytes }) => bytes.toString()),
        segments.map(({ number }) => number),
        segments.map(({ epoch }) => epoch),
        segments.map(({ first }) => first),
        attempt,
      ],
    );
    count += some.length;
    closed = some.at(-1)!.record.kind === "closed";
  }
  await finish(database, { place, id, attempt, count, ledger, closed });
}

async function assertFree(database: Database, id: string): Promise<void> {
  const { rowCount } = await database.query(
    "copy a session",
    `SELECT 1 FROM ${database.schema}.heads WHERE id = $1 AND trashed IS NULL`,
    [id],
  );
  if (rowCount !== 0) throw sessionExists(id);
}

/** In the trash from the start. The place is the id, unless that id is already used by a session in the trash. */
async function begin(database: Database, id: string, attempt: string): Promise<string> {
  const make = async (place: string): Promise<boolean> => {
    const { rowCount } = await database.query(
      "copy a session",
      `WITH ${database.local} INSERT INTO ${database.schema}.heads (place, id, head, owner, fence, trashed)
      SELECT $1, $2, 0, $3, 0, clock_timestamp() FROM power
      ON CONFLICT (place) DO UPDATE SET trashed = excluded.trashed WHERE heads.owner = $3`,
      [place, id, attempt],
    );
    return rowCount === 1;
  };
  if (await make(id)) return id;
  const place = newId();
  await make(place);
  return place;
}

/** Removes what failed attempts left behind. If one of them is still running, it finds its lines gone and fails. */
async function removeUnfinished(database: Database, id: string): Promise<void> {
  const { schema } = database;
  const { rows } = await database.query(
    "copy a session",
    `SELECT place FROM ${schema}.heads WHERE id = $1 AND trashed IS NOT NULL AND head = 0`,
    [id],
  );
  for (const { place } of rows) {
    // From now on that attempt can add nothing, unless it has just finished.
    const still = await database.query(
      "copy a session",
      `WITH ${database.local} UPDATE ${schema}.heads SET owner = NULL FROM power WHERE place = $1 AND trashed IS NOT NULL AND head = 0`,
      [place],
    );
    if (still.rowCount === 0) continue;
    for (let count = REMOVE_ROWS; count === REMOVE_ROWS; ) {
      const gone = await database.query(
        "copy a session",
        `DELETE FROM ${schema}.lines WHERE place = $1 AND seq IN (SELECT seq FROM ${schema}.lines WHERE place = $1 ORDER BY seq LIMIT $2)`,
        [place, REMOVE_ROWS],
      );
      count = gone.rowCount ?? 0;
    }
    await database.query(
      "copy a session",
      `WITH segments AS (DELETE FROM ${schema}.segments WHERE place = $1)
      DELETE FROM ${schema}.heads WHERE place = $1 AND trashed IS NOT NULL AND head = 0`,
      [place],
    );
  }
}

/** Takes the session out of the trash if it is complete. */
async function finish(
  database: Database,
  {
    place,
    id,
    attempt,
    count,
    ledger: { at, stamp, head, row },
    closed,
  }: {
    readonly place: string;
    readonly id: string;
    readonly attempt: string;
    readonly count: number;
    readonly ledger: Ledger;
    readonly closed: boolean;
  },
): Promise<void> {
  const { schema } = database;
  let rowCount: number | null = 0;
  try {
    ({ rowCount } = await database.retry("copy a session", () =>
      database.once(
        `WITH ${database.power}, whole AS (
          UPDATE ${schema}.heads SET trashed = NULL, head = $3, owner = NULL FROM power
          WHERE place = $1 AND owner = $8 AND trashed IS NOT NULL AND head = 0 AND (SELECT count(*) FROM ${schema}.lines WHERE place = $1) = $4
          RETURNING place
        )
        INSERT INTO ${schema}.catalogue (place, id, at, head, closed, summary, written)
        SELECT place, $2, $5, $3, $6, $7, $9 FROM whole ON CONFLICT DO NOTHING`,
        [place, id, head, count, stamp, closed, jsonb(row), attempt, differs(at, stamp)],
      ),
    ));
  } catch (error) {
    const { cause } = error as { cause?: unknown };
    throw isDuplicate(cause) ? sessionExists(id) : error;
  }
  if (rowCount === 1) return;
  // An earlier attempt whose answer was lost may have done it.
  const { rows } = await database.query(
    "copy a session",
    `WITH ${database.durable} SELECT 1 FROM durable, ${schema}.heads WHERE place = $1 AND trashed IS NULL AND head = $2`,
    [place, head],
  );
  if (rows.length === 1) return;
  const message = `Session ${id} was not copied: another process started to copy it too, or collected garbage, and removed the unfinished copy. Nothing else is affected. Try again.`;
  throw new HoldfastError("STORE_IO", message, { session: id });
}
