import { basename, join } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import { DatabaseCopy } from "../../files/database.ts";
import { type Door, Refused } from "../../files/door.ts";
import { openLines, readLines } from "../../jsonl/read-lines.ts";
import { LINE_REPAIRS, planLines } from "../../mend/plan-lines.ts";
import { isOfGoose, readRows, sessionsIn } from "./database.ts";
import { format } from "./format.ts";
import { planRows } from "./plan.ts";

/** goose: `<data>/goose/sessions/sessions.db`; older: `<id>.jsonl` beside it. */
export const goose: Agent = {
  name: "goose",
  title: "goose",
  versions: [],
  rules: { chain: "order", closesOpenCalls: true, leavesOpenCalls: true, repeatsIds: false, sequence: "none" },
  plan: (session, door) =>
    isDatabase(session.path, door) ? Promise.resolve(planRows(session, door)) : planLines(session, door, { format }),
  repairs: new Set<ProblemKind>([
    ...LINE_REPAIRS,
    ...(["damaged-database", "damaged-page", "damaged-row", "missing-row", "call-without-result"] as const),
    ...(["result-without-call", "result-before-call", "bad-tool-input", "poisoned-result"] as const),
  ]),

  homes({ GOOSE_PATH_ROOT, XDG_DATA_HOME, APPDATA }, home) {
    if (GOOSE_PATH_ROOT) return [join(GOOSE_PATH_ROOT, "data", "sessions")];
    const own = join(XDG_DATA_HOME || join(home, ".local", "share"), "goose", "sessions");
    return APPDATA ? [own, join(APPDATA, "Block", "goose", "data", "sessions")] : [own];
  },

  detect({ tables, values }) {
    if (tables) return isOfGoose(tables) ? 1 : 0;
    const records = values.filter((value) => format.isRecord(value));
    return values.length === 0 ? 0 : (0.9 * records.length) / values.length;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") {
      yield* isDatabase(root, door) ? databasePlaces(root, door) : [linePlace(root)];
      return;
    }
    const files = [...door.list(root)].filter(({ kind }) => kind === "file");
    const known = new Set<string>();
    for (const { path, name } of files)
      if (name === "sessions.db")
        for (const place of databasePlaces(path, door)) {
          known.add(place.id);
          yield place;
        }
    // What was moved into the database stays beside it.
    for (const { path, name } of files)
      if (name.endsWith(".jsonl") && !known.has(basename(name, ".jsonl"))) yield linePlace(path);
  },

  async read(session, door) {
    if (!isDatabase(session.path, door)) return readLines(await openLines(session.path, door), format);
    const place = { file: session.path, line: null, offset: null };
    const failed = (kind: "empty-file" | "unopenable", detail: string): ReadItem[] => [
      { type: "problem", problem: problem(kind, place, { detail }) },
    ];
    if (door.facts(session.path)?.size === 0) return failed("empty-file", "0 bytes");
    try {
      return readRows(DatabaseCopy.shared(session.path, door), session.id);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return failed("unopenable", error.message);
    }
  },
};

/** By its name; the draft of a repair, which has another one, by its first bytes. */
function isDatabase(path: string, door: Door): boolean {
  if (/\.(?:db|jsonl)$/.test(path)) return path.endsWith(".db");
  if (door.facts(path) === null) return false;
  using file = door.openRaw(path);
  return Buffer.from(file.read(0, 6)).toString("latin1") === "SQLite";
}

const linePlace = (path: string): SessionPlace => ({ agent: "goose", id: basename(path, ".jsonl"), path, parts: [] });

function databasePlaces(path: string, run: Door): SessionPlace[] {
  using door = run.inner();
  const itself: SessionPlace = { agent: "goose", id: basename(path, ".db"), path, parts: [] };
  try {
    const database = DatabaseCopy.shared(path, door);
    const isOwn = isOfGoose(database.tables());
    const sessions = isOwn ? sessionsIn(database) : [];
    if (sessions.length === 0) return isOwn && database.damage.length === 0 ? [] : [itself];
    return sessions.map(({ id, folder }) => ({ ...itself, id, isShared: true, ...(folder && { folder }) }));
  } catch (error) {
    if (error instanceof Refused) return [itself];
    throw error;
  }
}
