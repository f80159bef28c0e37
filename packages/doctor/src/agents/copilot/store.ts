import { basename, dirname, join } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Change } from "../../contract/plan.ts";
import { DatabaseCopy } from "../../files/database.ts";
import type { Door } from "../../files/door.ts";
import { changeDatabase } from "../../mend/replace-database.ts";
import type { SessionFacts } from "./facts.ts";
import { storeProblems } from "./surroundings.ts";

/** The version of `session-store.db` whose rows are known here. */
const VERSION = 8;
const COLUMNS = ["id", "cwd", "summary", "created_at", "updated_at"];

/** The row of a session that its database does not list; Copilot adds the turns itself, one for each that follows. */
export function storeChanges({ path, id }: SessionPlace, facts: SessionFacts, door: Door): readonly Change[] {
  const state = dirname(dirname(path));
  const store = join(dirname(state), "session-store.db");
  if (basename(path) !== "events.jsonl" || basename(state) !== "session-state") return [];
  const isMissing = [...storeProblems(dirname(state), id, facts.firstPrompt !== null, door)].some(
    ({ kind }) => kind === "index-missing",
  );
  if (!isMissing || facts.firstPrompt === null || facts.startedAt === null) return [];
  const database = DatabaseCopy.shared(store, door);
  const columns = database.tables().get("sessions") ?? [];
  const [row] = [...database.rows("select version from schema_version")];
  if (row?.["version"] !== VERSION || !COLUMNS.every((name) => columns.includes(name))) return [];
  const insert = `insert into sessions (${COLUMNS.join(", ")}) values (?, ?, ?, ?, ?)`;
  return changeDatabase(store, door, [insert], "adds the session to the index", [
    ...[id, facts.cwd ?? "/", facts.firstPrompt, facts.startedAt, facts.endedAt ?? facts.startedAt],
  ]);
}
