import { join } from "node:path";
import { type Problem, problem } from "../../contract/problem.ts";
import type { Place } from "../../contract/record.ts";
import { DatabaseCopy } from "../../files/database.ts";
import { type Door, Refused } from "../../files/door.ts";

const BYTES_MAX = 2 ** 20;

/** What stands beside the events: Copilot refuses a session whose `workspace.yaml` it cannot read. */
export function* workspaceProblems(path: string, session: string, door: Door): Generator<Problem> {
  const place: Place = { file: path, line: null, offset: null };
  if (door.facts(path) === null) return;
  let text: string;
  try {
    using file = door.openRaw(path);
    text = Buffer.from(file.read(0, BYTES_MAX)).toString("utf8");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    yield problem("unopenable", place, { detail: error.message });
    return;
  }
  const nul = text.indexOf("\0");
  const id = /^id:\s*["']?([^\s"']+)/m.exec(text)?.[1];
  if (nul >= 0) yield problem("nul-run", { ...place, offset: Buffer.byteLength(text.slice(0, nul)) }, REBUILT);
  else if (text.trim() === "") yield problem("empty-file", place, REBUILT);
  else if (id !== session) yield problem("header-damaged", place, { ...REBUILT, detail: id ?? "it names no session" });
}

const REBUILT = {
  means: "workspace.yaml, which says what session this is, is damaged. Copilot refuses the session.",
  fix: "Rebuilds it from the events.",
};

/** The database that lists the sessions and repeats what was said in each turn. */
export function* storeProblems(home: string, session: string, hasPrompt: boolean, door: Door): Generator<Problem> {
  const path = join(home, "session-store.db");
  if (door.facts(path) === null) return;
  const place: Place = { file: path, line: null, offset: null };
  try {
    const database = DatabaseCopy.shared(path, door);
    for (const { kind, words } of database.damage) yield problem(kind, place, { detail: words });
    if (database.damage.length > 0 || !database.tables().get("sessions")?.includes("id")) return;
    const [row] = [...database.rows("select id from sessions where id = ?", session)];
    if (row === undefined && hasPrompt)
      yield problem("index-missing", { ...place, row: { table: "sessions", id: session } }, { detail: session });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    yield problem("unopenable", place, { detail: error.message });
  }
}
