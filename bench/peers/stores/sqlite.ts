import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { LoadStore } from "../contract.ts";
import { anthropicForm } from "../turns.ts";

const SCHEMA = `PRAGMA journal_mode=WAL;
  CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, title TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS messages
    (id INTEGER PRIMARY KEY, session TEXT NOT NULL, at INTEGER NOT NULL, message TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS by_session ON messages (session, id, at)`;

/** What anybody would write with a database: a row per message. */
export function loadSqlite(synchronous: "NORMAL" | "FULL"): LoadStore {
  return async () => async (folder) => {
    const database = new DatabaseSync(join(folder, "sessions.db"));
    database.exec(`${SCHEMA}; PRAGMA synchronous=${synchronous}`);
    const insert = database.prepare("INSERT INTO messages (session, at, message) VALUES (?, ?, ?)");
    return {
      create: async (title) => {
        const id = crypto.randomUUID();
        database.prepare("INSERT INTO sessions VALUES (?, ?)").run(id, title);
        return {
          id,
          prepare: ({ pieces }) => {
            const messages = pieces.map(anthropicForm);
            return async () => {
              for (const message of messages) insert.run(id, Date.now(), JSON.stringify(message));
            };
          },
          close: async () => {},
        };
      },
      resume: async (id) => {
        const kept: unknown[] = [];
        const rows = database.prepare("SELECT message FROM messages WHERE session = ? ORDER BY id").iterate(id);
        for (const { message } of rows) kept.push(JSON.parse(message as string));
        return { messages: kept.length, kept };
      },
      list: async () =>
        database
          .prepare(
            "SELECT s.id, s.title, COUNT(*) AS messages, MAX(m.at) AS at FROM sessions s JOIN messages m ON m.session = s.id GROUP BY s.id ORDER BY at DESC",
          )
          .all().length,
      close: async () => database.close(),
    };
  };
}
