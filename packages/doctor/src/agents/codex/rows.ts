import { basename, dirname } from "node:path";
import type { Change } from "../../contract/plan.ts";
import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import type { LineEntries } from "../../mend/entries.ts";
import { changeDatabase } from "../../mend/replace-database.ts";
import { stateIndexOf, threadProblems } from "./indexes.ts";

/** The columns of `threads` that have no value of their own, in the version that is known here. */
const COLUMNS = [
  ...["id", "rollout_path", "created_at", "updated_at", "source", "model_provider", "cwd", "title", "sandbox_policy"],
  ...["approval_mode", "cli_version", "first_user_message", "preview", "history_mode", "originator", "archived"],
];
/** Of the database: 0.169.0. */
const MIGRATION = 62;
const TITLE_CHARS_MAX = 200;

/** Adds the row of a thread that Codex's list lacks, or corrects one that says where the rollout is not. */
export function threadChanges(rollout: string, thread: string, lines: LineEntries, door: Door): readonly Change[] {
  const kinds = new Set([...threadProblems(rollout, thread, door)].map(({ kind }) => kind));
  const index = stateIndexOf(rollout, door);
  if (index === null || index.database.damage.length > 0) return [];
  if (!kinds.has("index-missing") && !kinds.has("index-stale")) return [];
  const [latest] = index.tables.has("_sqlx_migrations")
    ? [...index.database.rows("select max(version) as version from _sqlx_migrations")]
    : [];
  const columns = index.tables.get("threads") ?? [];
  // A version that was never seen is left alone.
  if (latest?.["version"] !== MIGRATION || !COLUMNS.every((name) => columns.includes(name))) return [];
  const archived = basename(dirname(rollout)) === "archived_sessions" ? "1" : "0";
  if (kinds.has("index-stale")) {
    const statement = "update threads set rollout_path = ?2, archived = cast(?3 as integer) where id = ?1";
    return changeDatabase(index.path, door, [statement], "corrects the thread in Codex's list", [
      ...[thread, rollout, archived],
    ]);
  }
  const statement = `insert into threads (${COLUMNS.join(", ")}) values (${COLUMNS.map(() => "?").join(", ")})`;
  return changeDatabase(index.path, door, [statement], "adds the thread to Codex's list", [
    ...rowOf(rollout, thread, lines),
    archived,
  ]);
}

function rowOf(rollout: string, thread: string, lines: LineEntries): readonly string[] {
  const { living } = lines;
  const fields = (at: number): Fields => fieldsOf(living.at(at) ? lines.valueOf(living.at(at)!) : null);
  const meta = fieldsOf(fields(0)["payload"]);
  const text = (name: string, without: string): string => textIn(meta[name]) ?? without;
  const seconds = (time: unknown): string => String(Math.floor((Date.parse(String(time)) || 0) / 1_000));
  const prompt = living.find(({ isPrompt }) => isPrompt);
  const said = prompt ? promptIn(fieldsOf(fieldsOf(lines.valueOf(prompt))["payload"])) : "";
  const title = said.slice(0, TITLE_CHARS_MAX);
  return [
    ...[thread, rollout, seconds(meta["timestamp"]), seconds(fields(-1)["timestamp"])],
    ...[text("source", JSON.stringify(meta["source"] ?? "unknown")), text("model_provider", "unknown")],
    ...[text("cwd", "/"), title, '{"type":"read-only"}', "on-request", text("cli_version", "0.0.0")],
    ...[said, title, text("history_mode", "legacy"), text("originator", "unknown")],
  ];
}

function promptIn({ content }: Fields): string {
  const parts = Array.isArray(content) ? content : [];
  return parts.map((part) => textIn(fieldsOf(part)["text"]) ?? "").join("\n");
}
