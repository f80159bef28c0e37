import type { SessionPlace } from "../../contract/agent.ts";
import type { Grade, Plan } from "../../contract/plan.ts";
import { type Fields, fieldsOf, listIn } from "../../contract/shapes.ts";
import { DatabaseCopy } from "../../files/database.ts";
import type { Door } from "../../files/door.ts";
import { change, completeMessage, type MessageEntry, mendMessages } from "../../mend/messages.ts";
import { replaceDatabase } from "../../mend/replace-database.ts";
import { CUT_OFF } from "../../mend/words.ts";
import { messagesIn, sessionsIn } from "./database.ts";
import { SHAPE } from "./format.ts";

interface RowEntry extends MessageEntry {
  /** Null if it is added. */
  readonly id: number | null;
}

/** What makes goose load the session: its rows, as goose can read them. */
export function planRows(session: SessionPlace, door: Door): Plan | null {
  const database = DatabaseCopy.shared(session.path, door);
  const lost: string[] = [];
  const entries = [...messagesIn(database, session.id)].map(({ id, role, created, content, isWhole }): RowEntry => {
    const entry: RowEntry = { id, value: { role, created, content } };
    if (!isWhole) complete(entry, lost);
    return entry;
  });
  const before = entries.length;
  mendMessages(entries, SHAPE, { leavesOpenCalls: true }, (value, grade, why) => ({ id: null, value, grade, why }));
  const isListed = sessionsIn(database).some(({ id, folder }) => id === session.id && folder !== null);
  const changed = entries.filter(({ why }) => why !== undefined);
  if (changed.length === 0 && isListed && database.damage.length === 0) return null;
  const copy = database.changed(door, (target) => {
    if (!isListed)
      target
        .prepare("insert into sessions (id, working_dir, description) values (?, ?, ?)")
        .run(session.id, "/", "brought back by holdfast doctor");
    // Where messages come between others, all of them are numbered again: goose orders them by second and number.
    if (entries.length > before) renumber(entries, session.id, target);
    else
      for (const { id, value, isRemoved, why } of changed)
        if (isRemoved) target.prepare("delete from messages where id = ?").run(id);
        else if (why !== undefined)
          target.prepare("update messages set content_json = ? where id = ?").run(contentOf(value), id);
  });
  const whys = [...changed.map(({ why }) => why!), ...(isListed ? [] : ["makes the row of the session"])];
  const grade: Grade = lost.length > 0 ? "unknown" : whys.length > 0 ? "rebuilt" : "brought back";
  const words = [
    ...(database.damage.length > 0 ? ["builds a new database from every readable row"] : []),
    ...new Set(whys),
  ];
  const copied = { copy, state: database.state };
  return { changes: replaceDatabase(session.path, copied, grade, words.join("; "), door), lost };
}

type Target = Parameters<Parameters<DatabaseCopy["changed"]>[1]>[0];

function renumber(entries: readonly RowEntry[], session: string, target: Target): void {
  const columns = target
    .prepare("select name from pragma_table_info('messages')")
    .all()
    .map(({ name }) => String(name));
  const old = new Map(
    target
      .prepare("select * from messages where session_id = ?")
      .all(session)
      .map((row) => [Number(row["id"]), row]),
  );
  target.prepare("delete from messages where session_id = ?").run(session);
  let created = 0;
  for (const { id, value, isRemoved, why } of entries) {
    if (isRemoved) continue;
    const message = fieldsOf(value);
    const row = id === null ? undefined : old.get(id);
    created = Math.max(created, Number(row?.["created_timestamp"] ?? message["created"] ?? 0));
    const values: Record<string, unknown> = {
      ...row,
      session_id: session,
      role: message["role"],
      created_timestamp: created,
      ...(why === undefined && row ? {} : { content_json: contentOf(value) }),
    };
    const used = columns.filter((column) => column !== "id" && values[column] !== undefined);
    const names = used.map((column) => `"${column}"`).join();
    const marks = used.map(() => "?").join();
    target
      .prepare(`insert into messages (${names}) values (${marks})`)
      .run(...used.map((column) => values[column] as string));
  }
}

const contentOf = (value: unknown): string => JSON.stringify(fieldsOf(value)["content"]);

function complete(entry: RowEntry, lost: string[]): void {
  const message = fieldsOf(entry.value);
  const blocks = listIn(message["content"]).filter((block) => typeof fieldsOf(block)["type"] === "string");
  const kept = completeMessage({ ...message, content: blocks }, SHAPE, () => null);
  lost.push(`The end of the message in row ${entry.id} is lost.`);
  const value: Fields = kept?.value ?? { ...message, content: [{ type: "text", text: CUT_OFF }] };
  change(
    entry,
    value,
    "unknown",
    kept ? "keeps the readable beginning of a message" : "puts a note in the place of a message",
  );
}
