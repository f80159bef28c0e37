import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { sqliteCode, sqliteErrcode } from "../../../../src/disk/sqlite-error.ts";
import { place } from "../../../place.ts";

/** As Deno reports errors of `exec` and of opening a database: without `errcode`. */
function withoutCode(message: string): Error {
  return Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR" });
}

function errorOf(work: () => unknown): Error & { errcode: number } {
  try {
    work();
  } catch (error) {
    return error as Error & { errcode: number };
  }
  throw new Error("it went well");
}

describe("the result code of an SQLite error", () => {
  test("is the runtime's, extended, where the runtime has it", () => {
    const error = Object.assign(withoutCode("disk I/O error"), { errcode: 10 | (2 << 8) });
    expect([sqliteErrcode(error), sqliteCode(error)]).toEqual([522, 10]);
  });

  test("is found by SQLite's words where the runtime does not give it: the same as Node's", () => {
    using here = place();
    const file = join(here.path, "a.db");
    const garbage = join(here.path, "garbage.db");
    writeFileSync(garbage, "this is no database, and long enough to be one".repeat(20));
    using holder = new DatabaseSync(file);
    holder.exec("CREATE TABLE t (a); BEGIN EXCLUSIVE");
    using other = new DatabaseSync(file, { timeout: 0 });
    using reader = new DatabaseSync(":memory:");
    reader.exec("CREATE TABLE t (a); PRAGMA query_only=ON");
    using small = new DatabaseSync(":memory:");
    small.exec("PRAGMA max_page_count=2; CREATE TABLE t (a)");
    using broken = new DatabaseSync(garbage);
    const errors = {
      busy: errorOf(() => other.exec("BEGIN EXCLUSIVE")),
      readOnly: errorOf(() => reader.exec("INSERT INTO t VALUES (1)")),
      full: errorOf(() => small.exec("INSERT INTO t VALUES (zeroblob(100000))")),
      cannotOpen: errorOf(() => new DatabaseSync(join(here.path, "none/a.db"))),
      notADatabase: errorOf(() => broken.exec("SELECT * FROM sqlite_schema")),
      error: errorOf(() => reader.exec("SELECT * FROM missing")),
    };
    for (const [name, { message, errcode }] of Object.entries(errors)) {
      expect([name, sqliteCode(withoutCode(message))]).toEqual([name, errcode & 0xff]);
    }
    expect(Object.values(errors).map(({ errcode }) => errcode & 0xff)).toEqual([5, 8, 13, 14, 26, 1]);
  });

  test("Deno adds the path to what it cannot open; a message that only contains the words is another error", () => {
    expect(sqliteCode(withoutCode("unable to open database file: /no/such/file.db"))).toBe(14);
    expect(sqliteCode(withoutCode("no such table: database is locked"))).toBe(1);
  });

  test("is undefined for errors that are not SQLite's", () => {
    expect(sqliteErrcode(new Error("database is locked"))).toBeUndefined();
    expect(sqliteErrcode(Object.assign(new Error("x"), { code: "ENOENT" }))).toBeUndefined();
    expect(sqliteErrcode("database is locked")).toBeUndefined();
  });
});
