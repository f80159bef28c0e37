import { basename, dirname, join } from "node:path";
import type { Change } from "../../contract/plan.ts";
import { type Problem, problem } from "../../contract/problem.ts";
import type { Place } from "../../contract/record.ts";
import { DatabaseCopy } from "../../files/database.ts";
import { type Door, Refused } from "../../files/door.ts";
import { changeDatabase } from "../../mend/replace-database.ts";

/**
 * The databases of Codex beside its rollouts: `state_<n>.sqlite` lists the threads, `thread_history_<n>.sqlite` holds
 * what was read of each rollout so far. Codex makes both from the rollouts.
 */

/** How far a rollout was read into the database. */
export interface Projection {
  readonly offset: number;
  readonly ordinal: number;
  readonly place: Place;
}

export interface Index {
  readonly path: string;
  readonly database: DatabaseCopy;
  readonly tables: ReadonlyMap<string, readonly string[]>;
}

/** A thread that was set back has several rollouts, which have an id of their own behind that of the thread. */
export function threadIn(rollout: string): string | null {
  const name = /^rollout-.{19}-([0-9a-f-]{36})(?:_[0-9a-f-]{36})?\.jsonl(?:\.zst)?$/.exec(basename(rollout));
  return name?.[1] ?? null;
}

/** The folder of Codex that a rollout lies in; null if it lies elsewhere. */
export function codexHomeOf(rollout: string): string | null {
  const folder = dirname(rollout);
  if (basename(folder) === "archived_sessions") return dirname(folder);
  const sessions = join(folder, "../../..");
  return basename(sessions) === "sessions" ? dirname(sessions) : null;
}

/** What the list of threads says wrongly of one. */
export function* threadProblems(rollout: string, thread: string, door: Door): Generator<Problem> {
  const home = codexHomeOf(rollout);
  const index = home === null ? null : indexIn(home, "state", door);
  if (home === null || index === null) return;
  yield* damageOf(index);
  if (!index.tables.get("threads")?.includes("rollout_path")) return;
  const place = rowPlace(index, "threads", thread);
  const [row] = [...index.database.rows("select * from threads where id = ?", thread)];
  if (row === undefined) {
    // Until it has listed what was there before it had a list, rows may be missing.
    const [filled] = index.tables.has("backfill_state")
      ? [...index.database.rows("select status from backfill_state")]
      : [];
    const isFilled = filled === undefined || filled["status"] === "complete";
    if (isFilled && index.database.damage.length === 0) yield problem("index-missing", place, { detail: thread });
    return;
  }
  const listed = String(row["rollout_path"]);
  if (!isThere(listed, home, door))
    yield problem("index-stale", place, { detail: "it names a file that is not there" });
  const isArchived = basename(dirname(rollout)) === "archived_sessions";
  if (
    basename(listed).replace(/\.zst$/, "") === basename(rollout).replace(/\.zst$/, "") &&
    row["archived"] !== undefined
  )
    if ((Number(row["archived"]) !== 0) !== isArchived)
      yield problem("index-stale", place, { detail: isArchived ? "archived, but listed" : "not archived, but hidden" });
}

export function* projectionOf(rollout: string, thread: string, door: Door): Generator<Problem, Projection | null> {
  const home = codexHomeOf(rollout);
  const index = home === null ? null : indexIn(home, "thread_history", door);
  if (index === null) return null;
  yield* damageOf(index);
  const table = "thread_history_projection_state";
  if (!index.tables.get(table)?.includes("next_rollout_byte_offset")) return null;
  const [row] = [...index.database.rows(`select * from ${table} where thread_id = ?`, thread)];
  if (row === undefined) return null;
  const [offset, ordinal] = [Number(row["next_rollout_byte_offset"]), Number(row["next_rollout_ordinal"])];
  return { offset, ordinal, place: rowPlace(index, table, thread) };
}

/** How far a repaired rollout reaches: by the number of its next record if it has all of them, else by its bytes. */
export type RolloutReach = { readonly next: number } | { readonly size: number };

/**
 * Takes out what Codex read of a rollout so far: it then reads it again, from the beginning. Of a rollout that lost
 * something, the database has what is lost, so it stays.
 */
export function projectionReset(rollout: string, thread: string, reach: RolloutReach, door: Door): readonly Change[] {
  const found = projectionOf(rollout, thread, door);
  let next = found.next();
  while (!next.done) next = found.next();
  const projection = next.value;
  const home = codexHomeOf(rollout);
  const index = home === null ? null : indexIn(home, "thread_history", door);
  if (projection === null || index === null || index.database.damage.length > 0) return [];
  if ("next" in reach ? projection.ordinal > reach.next : projection.offset > reach.size) return [];
  const { path, tables } = index;
  const statements = [...tables].flatMap(([table, columns]) =>
    table.startsWith("thread_") && columns.includes("thread_id") ? [`delete from "${table}" where thread_id = ?`] : [],
  );
  return changeDatabase(path, door, statements, "has Codex read the rollout into its index again", [thread]);
}

/** The list of threads of the Codex home that a rollout lies in. */
export function stateIndexOf(rollout: string, door: Door): Index | null {
  const home = codexHomeOf(rollout);
  return home === null ? null : indexIn(home, "state", door);
}

/** What Codex read of the rollouts of its home so far. */
export function historyIndexOf(rollout: string, door: Door): Index | null {
  const home = codexHomeOf(rollout);
  return home === null ? null : indexIn(home, "thread_history", door);
}

/** A folder may have been moved with all that is in it: then its rows name the old place. */
function isThere(listed: string, home: string, door: Door): boolean {
  const within = /(?:^|[/\\])((?:archived_)?sessions[/\\].*)$/.exec(listed)?.[1];
  const places = within === undefined ? [listed] : [listed, join(home, within)];
  return places
    .flatMap((path) => [path, `${path}.zst`, path.replace(/\.zst$/, "")])
    .some((path) => door.facts(path) !== null);
}

/** The newest of its kind, opened once for each door. */
function indexIn(home: string, kind: "state" | "thread_history", door: Door): Index | null {
  const name = [...door.list(home)]
    .flatMap((entry) => (entry.kind === "file" ? [entry.name] : []))
    .filter((each) => each.startsWith(`${kind}_`) && /_\d+\.sqlite$/.test(each))
    .sort((a, b) => numberIn(b) - numberIn(a))[0];
  if (name === undefined) return null;
  const path = join(home, name);
  try {
    const database = DatabaseCopy.shared(path, door);
    return { path, database, tables: database.tables() };
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

const numberIn = (name: string): number => Number(/_(\d+)\.sqlite$/.exec(name)![1]);

function* damageOf({ path, database }: Index): Generator<Problem> {
  for (const { kind, words } of database.damage)
    yield problem(kind, { file: path, line: null, offset: null }, { detail: words });
}

function rowPlace({ path }: Index, table: string, id: string): Place {
  return { file: path, line: null, offset: null, row: { table, id } };
}
