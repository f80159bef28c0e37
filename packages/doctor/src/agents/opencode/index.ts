import { basename, dirname, isAbsolute, join } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import { fieldsOf } from "../../contract/shapes.ts";
import { DatabaseCopy } from "../../files/database.ts";
import { type Door, Refused } from "../../files/door.ts";
import { DatabaseRows, isOfOpenCode } from "./database.ts";
import { FolderRows, type FolderSession, filesOf, sessionAt, sessionsInFolder } from "./folders.ts";
import { planDatabase } from "./plan.ts";
import { readSession } from "./read.ts";
import { SCHEMA } from "./schema.ts";
import { write } from "./write.ts";

const REPAIRS: ReadonlySet<ProblemKind> = new Set([
  ...(["damaged-database", "damaged-page", "damaged-row", "missing-row", "invalid-utf8", "lost-record"] as const),
  ...(["bad-tool-input", "call-without-result", "poisoned-result"] as const),
]);

/** OpenCode: `<data>/opencode/opencode.db`, by the kind of its build `opencode-<kind>.db`; older: `storage/`. */
export const opencode: Agent = {
  name: "opencode",
  title: "OpenCode",
  programs: ["opencode"],
  versions: ["1.18.33"],
  // Calls that were interrupted stay open; OpenCode makes up their results for each request.
  resume: ({ id }) => ["opencode", "--session", id],
  rules: { chain: "order", closesOpenCalls: true, leavesOpenCalls: true, repeatsIds: false, sequence: "none" },

  homes({ XDG_DATA_HOME, OPENCODE_DB }, home) {
    const folder = join(XDG_DATA_HOME || join(home, ".local", "share"), "opencode");
    const isElsewhere = OPENCODE_DB && isAbsolute(OPENCODE_DB) && dirname(OPENCODE_DB) !== folder;
    return isElsewhere ? [folder, OPENCODE_DB] : [folder];
  },

  detect({ isFolder, names, tables, values, head, path }) {
    if (isFolder) return ["session", "message", "part"].every((name) => names.includes(name)) ? 1 : 0;
    if (tables && tables.size > 0) return isOfOpenCode(tables) ? 1 : 0;
    const [value] = values;
    const { id, projectID, directory } = fieldsOf(value);
    if (String(id).startsWith("ses_") && typeof (projectID ?? directory) === "string") return 1;
    // Of a database whose header is gone, the words that made its tables are left.
    const text = path.endsWith(".db") ? Buffer.from(head).toString("latin1") : "";
    return /`message_id` text NOT NULL/.test(text) && /`project_id` text NOT NULL/.test(text) ? 0.8 : 0;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") {
      yield* root.endsWith(".json") ? [folderPlace(sessionAt(root, door), door)] : databasePlaces(root, door);
      return;
    }
    const known = new Set<string>();
    for (const { path, name, kind } of door.list(root))
      if (kind === "file" && /^opencode(?:-[\w.-]+)?\.db$/.test(name))
        for (const place of databasePlaces(path, door)) {
          known.add(place.id);
          yield place;
        }
    // What was moved into the database stays in its folder.
    const storage = door.kindOf(join(root, "storage")) === "folder" ? join(root, "storage") : root;
    const all = [...sessionsInFolder(join(storage, "session"), door)];
    const ids = new Set(all.map(({ id }) => id));
    for (const session of all)
      if (!known.has(session.id) && !ids.has(session.parent ?? "")) yield folderPlace(session, door);
  },

  repairs: REPAIRS,
  async plan(session, door) {
    return session.path.endsWith(".json") ? null : planDatabase(session, door);
  },

  async read(session, door) {
    if (session.path.endsWith(".json")) {
      const children = childrenOf(session.path, session.id, door);
      return readSession(new FolderRows(session.path, children, door), session.id);
    }
    if (door.facts(session.path)?.size === 0) return [unreadable(session.path, "empty-file", "0 bytes")];
    try {
      const database = DatabaseCopy.shared(session.path, door, SCHEMA);
      const rows = new DatabaseRows(database);
      if (rows.roots().length === 0) return [...rows.problems()].map((found) => ({ type: "problem", problem: found }));
      return readSession(rows, session.id);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return [unreadable(session.path, "unopenable", error.message)];
    }
  },

  write,
};

const unreadable = (file: string, kind: "empty-file" | "unopenable", detail: string): ReadItem => ({
  type: "problem",
  problem: problem(kind, { file, line: null, offset: null }, { detail }),
});

/** The sessions of a database; of one that tells none of them, itself. */
function databasePlaces(path: string, run: Door): SessionPlace[] {
  using door = run.inner();
  const itself: SessionPlace = { agent: "opencode", id: basename(path, ".db"), path, parts: [] };
  try {
    const database = DatabaseCopy.shared(path, door, SCHEMA);
    const roots = new DatabaseRows(database).roots();
    const isBad = database.damage.length > 0 || database.tables().size === 0;
    if (roots.length === 0) return isBad ? [itself] : [];
    return roots.map(({ id, folder }) => ({ ...itself, id, isShared: true, ...(folder !== null && { folder }) }));
  } catch (error) {
    if (error instanceof Refused) return [itself];
    throw error;
  }
}

function folderPlace({ id, path, folder }: FolderSession, door: Door): SessionPlace {
  const parts = [...filesOf(path, childrenOf(path, id, door), door)];
  return { agent: "opencode", id, path, parts, ...(folder !== null && { folder }) };
}

/** The sub-agents of a session, and theirs. */
function childrenOf(path: string, id: string, door: Door): FolderSession[] {
  const all = [...sessionsInFolder(dirname(path), door)];
  const found = new Map<string, FolderSession>();
  const left = [id];
  for (let next = left.pop(); next !== undefined; next = left.pop())
    for (const session of all) {
      if (session.parent !== next || session.id === id || found.has(session.id)) continue;
      found.set(session.id, session);
      left.push(session.id);
    }
  return [...found.values()];
}
