import { HoldfastError } from "holdfast";
import { describe, expect, test } from "vitest";
import { Ledger } from "../../../../../src/journal/ledger.ts";
import { OrderClock } from "../../../../../src/journal/order.ts";
import {
  corrupt,
  isBusy,
  isCorrupt,
  isIoError,
  isRefusal,
  isSqliteError,
  orNull,
  sqliteFailure,
  syncFailed,
  writeFailure,
} from "../../../../../src/stores/sqlite/database/failure.ts";

/** An error of SQLite with this extended result code. */
const sqlite = (errcode: number): Error =>
  Object.assign(new Error("SQLite's words"), { code: "ERR_SQLITE_ERROR", errcode });

const ioError = (detail: number): number => 10 | (detail << 8);
/** https://sqlite.org/rescode.html: FSYNC, DIR_FSYNC, TRUNCATE, FSTAT, CLOSE, AUTH, IN_PAGE; and one without detail. */
const IN_DOUBT = [4, 5, 6, 7, 16, 28, 34, 0].map(ioError);
/** READ, SHORT_READ, WRITE, NOMEM, RDLOCK, LOCK. */
const NOTHING_WRITTEN = [1, 2, 3, 9, 12, 15].map(ioError);

describe("what an error of SQLite means", () => {
  test.each([
    [1, "JOURNAL_UNREADABLE", "damaged"],
    [3, "STORE_FORBIDDEN", "permission denied"],
    [5, "STORE_IO", "busy"],
    [517, "STORE_IO", "busy"],
    [8, "STORE_FORBIDDEN", "permission denied"],
    [1032, "STORE_FORBIDDEN", "permission denied"],
    [11, "JOURNAL_UNREADABLE", "damaged"],
    [267, "JOURNAL_UNREADABLE", "damaged"],
    [13, "STORE_FULL", "no space left"],
    [14, "STORE_FORBIDDEN", "permission denied"],
    [15, "STORE_IO", "busy"],
    [18, "JOURNAL_UNREADABLE", "damaged"],
    [23, "STORE_FORBIDDEN", "permission denied"],
    [26, "STORE_URL_INVALID", "not an SQLite database"],
    [21, "STORE_IO", "SQLite reported an error"],
    ...NOTHING_WRITTEN.map((code) => [code, "STORE_IO", "the disk reported an error"] as const),
    ...IN_DOUBT.map((code) => [code, "SYNC_FAILED", "in doubt"] as const),
  ] as const)("%i: %s", (errcode, code, why) => {
    const cause = sqlite(errcode);
    const failure = sqliteFailure(cause, "do this", "/a/store.db", "Nothing was written.") as HoldfastError;
    expect(failure).toBeInstanceOf(HoldfastError);
    expect([failure.code, failure.facts, failure.cause]).toEqual([
      code,
      { path: "/a/store.db", sqlite: errcode },
      cause,
    ]);
    for (const part of [
      "Could not do this",
      why,
      `SQLite ${errcode}: SQLite's words; /a/store.db`,
      "Nothing was written.",
    ])
      expect(failure.message).toContain(part);
    // What to do comes last.
    expect(failure.message).toMatch(/Nothing was written\. \S.*\.$/);
  });

  test("errors of the system are translated, those of ours stay, and a fault of the program is thrown", () => {
    const full = Object.assign(new Error("full"), { code: "ENOSPC" });
    expect(sqliteFailure(full, "do this", "/a", "Safe.")).toMatchObject({
      code: "STORE_FULL",
      facts: { errno: "ENOSPC" },
    });
    const ours = new HoldfastError("SESSION_EXISTS", "ours", {});
    expect(sqliteFailure(ours, "do this", "/a", "Safe.")).toBe(ours);
    expect(() => sqliteFailure(new TypeError("a fault"), "do this", "/a", "Safe.")).toThrow("a fault");
  });
});

test("which errors are of another program, damage, or of the disk", () => {
  const groups = (error: unknown): boolean[] => [isBusy, isCorrupt, isIoError, isSqliteError].map((is) => is(error));
  const [no, yes] = [false, true];
  for (const code of [5, 261, 517, 15]) expect(groups(sqlite(code)), `${code}`).toEqual([yes, no, no, yes]);
  for (const code of [11, 267, 18]) expect(groups(sqlite(code)), `${code}`).toEqual([no, yes, no, yes]);
  for (const code of [10, 266]) expect(groups(sqlite(code)), `${code}`).toEqual([no, no, yes, yes]);
  for (const code of [14, 526]) expect(groups(sqlite(code)), `${code}`).toEqual([no, no, no, yes]);
  expect(groups(corrupt("c"))).toEqual([no, yes, no, yes]);
  expect(groups(new Error("x"))).toEqual([no, no, no, no]);
});

test("a damaged page gives null; any other error is thrown", () => {
  const thrower = (error: Error) => (): never => {
    throw error;
  };
  expect([orNull(() => 0), orNull(thrower(corrupt("c")))]).toEqual([0, null]);
  expect(() => orNull(thrower(new Error("b")))).toThrow("b");
});

describe("an append that fails", () => {
  /** Records 1 to 3 are durable, and record 4 is written. */
  function ledger(): Ledger {
    const made = new Ledger({ clock: OrderClock.of(undefined) });
    for (let i = 0; i < 4; i++) made.commit(made.prepare([{ kind: "note" }]));
    made.setDurable(3);
    return made;
  }

  test.each([
    [13, "STORE_FULL", true],
    [8, "STORE_FORBIDDEN", true],
    [5, "STORE_IO", true],
    [11, "JOURNAL_UNREADABLE", false],
    ...NOTHING_WRITTEN.map((code) => [code, "STORE_IO", true] as const),
  ] as const)("with %i: %s, and nothing was written", (errcode, code, isRefused) => {
    const failure = writeFailure(sqlite(errcode), "s", ledger(), "/a/store.db-wal");
    expect([failure.code, failure.facts, isRefusal(failure)]).toEqual([
      ...[code, { path: "/a/store.db-wal", sqlite: errcode }, isRefused],
    ]);
    expect(failure.message).toContain("Nothing of this append was written");
  });

  test.each(IN_DOUBT)("with %i: in doubt", (errcode) => {
    const failure = writeFailure(sqlite(errcode), "s", ledger(), "/a");
    expect([failure.code, isRefusal(failure)]).toEqual(["SYNC_FAILED", false]);
    expect(failure.facts).toMatchObject({ session: "s", durable: 3, from: 4, to: 4 });
  });

  test.each([19, 1555, 2067])("with %i: somebody else has written the record", (errcode) => {
    const failure = writeFailure(sqlite(errcode), "s", ledger(), "/a");
    expect([failure.code, failure.facts, isRefusal(failure)]).toEqual(["LEASE_LOST", { session: "s", seq: 5 }, false]);
    expect(failure.message).toContain("record 5 of session s");
  });

  test("a sync that fails names what is in doubt", () => {
    const some = ledger();
    const cause = Object.assign(new Error("EIO"), { code: "EIO" });
    const failure = syncFailed("s", some, cause);
    expect(failure.facts).toEqual({ session: "s", durable: 3, from: 4, to: 4, errno: "EIO" });
    expect(failure.message).toContain("Records 4 to 4 of session s are in doubt");
    some.setDurable(4);
    const later = syncFailed("s", some, new Error("no errno"));
    expect(later.facts).toEqual({ session: "s", durable: 4, from: 5, to: 4, errno: null });
    expect(later.message).toContain("Everything of session s up to 4 is safe");
  });
});
