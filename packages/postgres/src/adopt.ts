import { randomUUID } from "node:crypto";
import { HoldfastError, newId } from "holdfast";
import {
  assertFollows,
  type Ledger,
  nothingToAdopt,
  type Segment,
  segmentAt,
  sessionExists,
  type VerbatimLine,
} from "holdfast/kit";
import { differs, jsonb } from "./catalogue.ts";
import type { Database } from "./database.ts";
import { isDuplicate } from "./failure.ts";

const BATCH_BYTES = 1024 * 1024;
const BATCH_ROWS = 1024;
const REMOVE_ROWS = 5000;

/**
 * A session with exactly these lines. Until all of them are there it is in the trash, with no head, where nobody sees it, and where one that is never finished is collected as any other; one last statement takes it out.
 * Throws SESSION_EXISTS, and what the database says.
 */
export async function adoptSession(
  database: Database,
  id: string,
  ledger: Ledger,
  lines: AsyncIterable<readonly VerbatimLine[]>,
): Promise<void> {
  const { schema } = database;
  const what = "take a session over";
  await assertFree(database, id);
  await removeUnfinished(database, id);
  const attempt = randomUUID();
  const place = await begin(database, id, attempt);
  let segment: Segment | null = null;
  let count = 0;
  let closed = false;
  const put = async (some: readonly VerbatimLine[]): Promise<void> => {
    const begun: Segment[] = [];
    for (const { record } of some) {
      const begins: Segment | null = segmentAt(record, segment);
      if (begins) begun.push(begins);
      segment = begins ?? segment;
    }
    // Sent again without harm, if the answer is lost: the same lines go to the same places. Only while the place is this attempt's: lines in a place that is nobody's, or another's, would be in the way of whoever writes there.
    await database.query(
      what,
      `WITH ours AS (
        SELECT place FROM ${schema}.heads WHERE place = $1 AND owner = $7 AND trashed IS NOT NULL AND head = 0 FOR SHARE
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
        begun.map(({ number }) => number),
        begun.map(({ epoch }) => epoch),
        begun.map(({ first }) => first),
        attempt,
      ],
    );
    count += some.length;
  };

  let waiting: VerbatimLine[] = [];
  let bytes = 0;
  for await (const some of lines) {
    for (const line of some) {
      assertFollows(line, id, ledger.head);
      ledger.absorb(line.record);
      closed = line.record.kind === "closed";
      waiting.push(line);
      bytes += line.bytes.length;
      if (bytes < BATCH_BYTES && waiting.length < BATCH_ROWS) continue;
      await put(waiting);
      waiting = [];
      bytes = 0;
    }
  }
  if (waiting.length > 0) await put(waiting);
  if (count === 0) throw nothingToAdopt(id);
  await finish(database, { place, id, attempt, count, ledger, closed });
}

async function assertFree(database: Database, id: string): Promise<void> {
  const { rowCount } = await database.query(
    "take a session over",
    `SELECT 1 FROM ${database.schema}.heads WHERE id = $1 AND trashed IS NULL`,
    [id],
  );
  if (rowCount !== 0) throw sessionExists(id);
}

/** In the trash from the beginning. Only an id that was used before lives elsewhere than at its own place. */
async function begin(database: Database, id: string, attempt: string): Promise<string> {
  const make = async (place: string): Promise<boolean> => {
    const { rowCount } = await database.query(
      "take a session over",
      `INSERT INTO ${database.schema}.heads (place, id, head, owner, fence, trashed) VALUES ($1, $2, 0, $3, 0, clock_timestamp())
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

/** What attempts that came to nothing have left. If one is still under way somewhere, it finds its lines gone, and says so. */
async function removeUnfinished(database: Database, id: string): Promise<void> {
  const { schema } = database;
  const { rows } = await database.query(
    "take a session over",
    `SELECT place FROM ${schema}.heads WHERE id = $1 AND trashed IS NOT NULL AND head = 0`,
    [id],
  );
  for (const { place } of rows) {
    // From now on it adds nothing. Or it has just been finished.
    const still = await database.query(
      "take a session over",
      `UPDATE ${schema}.heads SET owner = NULL WHERE place = $1 AND trashed IS NOT NULL AND head = 0`,
      [place],
    );
    if (still.rowCount === 0) continue;
    for (let count = REMOVE_ROWS; count === REMOVE_ROWS; ) {
      const gone = await database.query(
        "take a session over",
        `DELETE FROM ${schema}.lines WHERE place = $1 AND seq IN (SELECT seq FROM ${schema}.lines WHERE place = $1 ORDER BY seq LIMIT $2)`,
        [place, REMOVE_ROWS],
      );
      count = gone.rowCount ?? 0;
    }
    await database.query(
      "take a session over",
      `WITH segments AS (DELETE FROM ${schema}.segments WHERE place = $1)
      DELETE FROM ${schema}.heads WHERE place = $1 AND trashed IS NOT NULL AND head = 0`,
      [place],
    );
  }
}

/** Takes it out of the trash, if all of it is there. */
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
    ({ rowCount } = await database.retry("take a session over", () =>
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
  // An attempt whose answer was lost may have done it.
  const { rows } = await database.query(
    "take a session over",
    `SELECT 1 FROM ${schema}.heads WHERE place = $1 AND trashed IS NULL AND head = $2`,
    [place, head],
  );
  if (rows.length === 1) return;
  const message = `Session ${id} was not taken over: somebody else has begun to do so too, or collected garbage, and took what was there of it. Nothing else is affected. Try again.`;
  throw new HoldfastError("STORE_IO", message, { session: id });
}
