import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { copilot } from "../../../src/agents/copilot/index.ts";
import { diagnose } from "../../../src/diagnosis/diagnose.ts";
import { DatabaseCopy } from "../../../src/files/database.ts";
import { Door } from "../../../src/files/door.ts";
import { listRecordings, placeRecording } from "../../real/recording.ts";
import { sessionsIn } from "../agents/agent-suite.ts";

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-database-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

function databaseAt(name: string): string {
  const path = join(scratch, name);
  using database = new DatabaseSync(path);
  database.exec("create table if not exists words (word text, number integer)");
  return path;
}

/** Counts the copies that a run made: each has a number. */
const copiesIn = (run: Door): string[] => readdirSync(run.temporary()).filter((name) => name.endsWith(".db"));

describe("a database that sessions share", () => {
  test("is copied once for a run, whoever asks", () => {
    const path = databaseAt("one.db");
    using run = new Door();
    const seen = new Set<DatabaseCopy>();
    for (let session = 0; session < 20; session++) {
      using door = run.inner();
      seen.add(DatabaseCopy.shared(path, door));
      expect(DatabaseCopy.shared(path, door)).toBe([...seen][0]);
    }
    expect([seen.size, copiesIn(run)]).toEqual([1, ["1.db"]]);
  });

  test("is copied again when the agent wrote to it, and the copy in use stays", () => {
    const path = databaseAt("one.db");
    using run = new Door();
    const count = (copy: DatabaseCopy): unknown => [...copy.rows("select count(*) as n from words")][0]!["n"];
    using early = run.inner();
    const before = DatabaseCopy.shared(path, early);
    using database = new DatabaseSync(path);
    database.exec(`insert into words values ('${"heron".repeat(2_000)}', 1)`);
    using late = run.inner();
    const after = DatabaseCopy.shared(path, late);
    expect([count(before), count(after), count(DatabaseCopy.shared(path, early))]).toEqual([0, 1, 0]);
    early[Symbol.dispose]();
    expect([count(after), copiesIn(run).length]).toEqual([1, 1]);
  });

  test("only a few copies are kept at a time", () => {
    using run = new Door();
    for (let n = 0; n < 30; n++) {
      using door = run.inner();
      DatabaseCopy.shared(databaseAt(`${n}.db`), door);
    }
    expect(copiesIn(run).length).toBeLessThan(6);
  });

  test("numbers larger than those of JavaScript are read", () => {
    const path = databaseAt("large.db");
    {
      using database = new DatabaseSync(path);
      database.exec("insert into words values ('many', 9223372036854775807), ('few', 3)");
    }
    using door = new Door();
    const rows = [...DatabaseCopy.shared(path, door).rows("select number from words")];
    expect(rows).toEqual([{ number: "9223372036854775807" }, { number: 3 }]);
  });

  test("a run over the sessions of Copilot copies their store once", async () => {
    const recording = listRecordings("copilot").find(({ story }) => story === "two")!;
    mkdirSync(join(scratch, "lab"));
    const { home } = placeRecording(recording, join(scratch, "lab"));
    using run = new Door();
    const sessions = sessionsIn(copilot, home);
    expect(sessions.length).toBeGreaterThan(1);
    for (const session of sessions) expect((await diagnose(copilot, session, run)).problems).toEqual([]);
    expect(copiesIn(run)).toEqual(["1.db"]);
  });
});
