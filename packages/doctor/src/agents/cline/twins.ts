import { dirname, join } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import { parseDocument } from "../../document/parse-document.ts";
import { documentAt, isBlank } from "../../document/read-document.ts";
import { DatabaseCopy } from "../../files/database.ts";
import { type Door, Refused } from "../../files/door.ts";
import { messageOfIndex, messagesOfScreen, screenFormat, type TwinMessage } from "./format.ts";
import { isOfCommand, SCREEN } from "./places.ts";

/** The conversation where Cline says it again: in the search index of the command, on the screen of the extension. */
export function twinsOf({ path, id }: SessionPlace, door: Door): readonly TwinMessage[] {
  try {
    return isOfCommand(path)
      ? [...indexed(join(dirname(path), "../../db/session-search.db"), id, door)]
      : shown(join(dirname(path), SCREEN), door);
  } catch (error) {
    if (error instanceof Refused) return [];
    throw error;
  }
}

const COLUMNS = ["c0", "c2", "c3", "c7"];

function* indexed(path: string, session: string, door: Door): Generator<TwinMessage> {
  if (door.facts(path) === null) return;
  const database = DatabaseCopy.shared(path, door);
  const columns = database.tables().get("session_search_content");
  if (!COLUMNS.every((column) => columns?.includes(column))) return;
  const sql = "select c3 as role, c7 as content from session_search_content where c0 = ? and c2 >= 0 order by c2";
  for (const { role, content } of database.rows(sql, session))
    if (role === "user" || role === "assistant") yield messageOfIndex(role, String(content));
}

/** `ui_messages.json`, as far as it can be read. */
export function shownMessages(path: string, door: Door): readonly unknown[] {
  const bytes = documentAt(path, door);
  if (bytes === null || isBlank(bytes)) return [];
  return parseDocument(bytes, screenFormat).flatMap(({ role, value }) => (role === "record" ? [value] : []));
}

const shown = (path: string, door: Door): TwinMessage[] => messagesOfScreen(shownMessages(path, door));
