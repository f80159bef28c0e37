import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { goose } from "../../../src/agents/goose/index.ts";
import { Executor } from "../../../src/fix/executor.ts";
import { Door, fix, listBackups, planFix, undo } from "../../../src/index.ts";

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-shared-database-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const path = (): string => join(scratch, "sessions.db");
const backups = (): string => join(scratch, "backups");
const block = JSON.stringify([{ type: "text", text: "a heron" }]);

/** Two sessions of goose in a database with a log, of which one is damaged. */
function placed() {
  using database = new DatabaseSync(path());
  database.exec(`pragma journal_mode = wal;
    create table sessions (id text primary key, description text, working_dir text);
    create table messages (id integer primary key, session_id text, role text, content_json text,
      created_timestamp integer);
    insert into sessions values ('damaged', '', '/work'), ('other', '', '/work');
    insert into messages values (1, 'damaged', 'user', '${block}', 1), (2, 'damaged', 'user', '[{"type', 2),
      (3, 'other', 'user', '${block}', 3);`);
  using door = new Door();
  return [...goose.find(path(), door)].find(({ id }) => id === "damaged")!;
}

/** What an agent says in the other session: it stands in the log alone as long as the agent runs. */
function speak(): Disposable {
  const database = new DatabaseSync(path());
  database.exec(`pragma wal_autocheckpoint = 0; insert into messages values (4, 'other', 'user', '${block}', 4)`);
  return { [Symbol.dispose]: () => database.close() };
}

test("what another session was told while a repair was planned stays: the repair is refused", async () => {
  const session = placed();
  using door = new Door();
  const plan = await planFix(goose, session, door);
  using _ = speak();
  const executor = new Executor(plan!, new Map(), door);
  expect(() => executor.draft()).toThrow("wrote to it meanwhile");
});

test("undo is refused while the log has what was said since, and changes nothing", async () => {
  const session = placed();
  await fix(goose, session, { backups: backups() });
  using door = new Door();
  const [backup] = listBackups(backups(), door);
  const repaired = readFileSync(path());
  const speaking = speak();
  expect(() => undo(backups(), backup!)).toThrow("changed since the fix");
  expect(readFileSync(path()).equals(repaired)).toBe(true);
  speaking[Symbol.dispose]();
});

test("undo brings back no backup that is not what was replaced", async () => {
  const session = placed();
  await fix(goose, session, { backups: backups() });
  using door = new Door();
  const [backup] = listBackups(backups(), door);
  const repaired = readFileSync(path());
  writeFileSync(join(backups(), backup!.id, "0"), "");
  expect(() => undo(backups(), backup!)).toThrow("its backup is damaged");
  expect(readFileSync(path()).equals(repaired)).toBe(true);
});
