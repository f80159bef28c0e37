import { expect, test } from "vitest";
import {
  CommitUnconfirmed,
  codeOf,
  databaseFailure,
  headMovedBack,
  isConflict,
  isDuplicate,
  isGivenUp,
  isPassing,
  isReadOnly,
  isStarting,
  leaseLost,
  outcomeUnknown,
} from "../../src/failure.ts";

const coded = (code: unknown, message = "said so", more: object = {}): Error =>
  Object.assign(new Error(message), { code }, more);

test.each<[what: string, error: unknown, passes: boolean]>([
  ...["40001", "40P01", "25P04", "26000", "25006", "53300", "55P03", "57P01", "57P02", "57P03", "57P05"].map(
    (code): [string, unknown, boolean] => [code, coded(code), true],
  ),
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"].map(
    (code): [string, unknown, boolean] => [code, coded(code), true],
  ),
  ["the end of a connection", coded("08006"), true],
  ["a number of an error with 08 inside", coded("42083"), false],
  ["a missing table", coded("42P01"), false],
  ["a full disk", coded("53100"), false],
  ["a code, whatever the words are", coded("42P01", "Connection terminated"), false],
  ["a code that is a number: the words count", coded(5, "Connection terminated"), true],
  ["the missing socket of a local server", coded("ENOENT", "", { syscall: "connect" }), true],
  ["another missing file", coded("ENOENT", "", { syscall: "open" }), false],
  [
    "several addresses, one of which may answer later",
    new AggregateError([coded("EACCES"), coded("ECONNREFUSED")]),
    true,
  ],
  ["several addresses, none of which will", new AggregateError([coded("EACCES"), coded("EPERM")]), false],
  ["a standby that nobody waited for", new CommitUnconfirmed(), true],
  ["a lost connection, in the driver's words", new Error("Connection terminated unexpectedly"), true],
  ["no answer in time", new Error("Query read timeout"), true],
  ["no connection in time", new Error("timeout exceeded when trying to connect"), true],
  ["a fault of a program", new TypeError("x is not a function"), false],
  ["words alone", "Connection terminated", false],
  ["nothing", null, false],
  ["nothing at all", undefined, false],
])("whether to send a statement again after: %s", (_, error, passes) => {
  expect(isPassing(error)).toBe(passes);
});

test("what an error is, by its code", () => {
  const codes = ["25006", "57P03", "40001", "40P01", "23505", "42P01"];
  const found = (is: (error: unknown) => boolean): string[] => codes.filter((code) => is(coded(code)));
  expect(found(isReadOnly)).toEqual(["25006"]);
  expect(found(isStarting)).toEqual(["57P03"]);
  expect(found(isConflict)).toEqual(["40001", "40P01"]);
  expect(found(isDuplicate)).toEqual(["23505"]);
  for (const nothing of [null, undefined, "25006", 25006, {}, { code: 25006 }]) {
    expect(codeOf(nothing)).toBeUndefined();
    for (const is of [isReadOnly, isStarting, isConflict, isDuplicate, isGivenUp]) expect(is(nothing)).toBe(false);
  }
  expect(isGivenUp(new Error("Query read timeout"))).toBe(true);
  expect(isGivenUp(new Error("Connection terminated"))).toBe(false);
  expect(isGivenUp({ message: "Query read timeout" })).toBe(false);
});

test.each<[what: string, error: unknown, code: string, why: RegExp, advice: RegExp]>([
  ["a full disk", coded("53100"), "STORE_FULL", /no space left/, /Free some space/],
  ["a limit of the server", coded("54000"), "STORE_FULL", /reached a limit of PostgreSQL/, /message says which/],
  ["no memory", coded("53200"), "STORE_IO", /out of memory/, /Free some memory/],
  ["no connection left", coded("53300"), "STORE_IO", /no connection left/, /"max_connections"/],
  ["another limit", coded("53400"), "STORE_IO", /limit of its configuration/, /Raise the limit/],
  [
    "no root certificate",
    new Error("SECURITY WARNING: sslmode=verify-ca requires specifying a CA with sslrootcert"),
    "STORE_URL_INVALID",
    /needs a root certificate/,
    /Add "sslrootcert"/,
  ],
  ["a missing file", coded("ENOENT", "no such file", { syscall: "open" }), "STORE_URL_INVALID", /file named/, /path/],
  ["a file of somebody else", coded("EACCES"), "STORE_URL_INVALID", /file named/, /permissions/],
  ["a missing socket", coded("ENOENT", "", { syscall: "connect" }), "STORE_IO", /does not answer/, /Check the server/],
  ["an unknown certificate", coded("SELF_SIGNED_CERT_IN_CHAIN"), "STORE_FORBIDDEN", /no trusted/, /"sslrootcert"/],
  ["a certificate of nobody", coded("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), "STORE_FORBIDDEN", /no trusted/, /"sslmode"/],
  ["no encryption", new Error("The server does not support SSL connections"), "STORE_FORBIDDEN", /no trusted/, /ssl/],
  ["no right", coded("42501"), "STORE_FORBIDDEN", /permission denied/, /Check the user/],
  ["a wrong password", coded("28P01"), "STORE_FORBIDDEN", /permission denied/, /the password/],
  ["no password", new Error("SASL: client password must be a string"), "STORE_FORBIDDEN", /permission denied/, /user/],
  ["no database", coded("3D000"), "STORE_URL_INVALID", /does not exist/, /Create it/],
  ["a standby", coded("25006"), "STORE_IO", /read-only/, /address of the primary/],
  ["a locked row", coded("55P03"), "STORE_IO", /holds the row/, /pg_locks/],
  ["a server that is away", coded("ECONNREFUSED"), "STORE_IO", /does not answer/, /the network/],
  ["something else", coded("XX000"), "STORE_IO", /reported an error/, /its log/],
  ["what is no error", "boom", "STORE_IO", /reported an error/, /its log/],
])("%s is told in words", (_, error, code, why, advice) => {
  const failure = databaseFailure(error, "append to the journal", "postgres://me@host/db");
  const state = codeOf(error) ?? "";
  expect(failure).toMatchObject({ code, cause: error, facts: { database: "postgres://me@host/db", state } });
  const said = error instanceof Error ? error.message : String(error);
  const [reason, rest] = failure.message.split(` (postgres://me@host/db: ${said}). `);
  expect(reason).toMatch(/^Could not append to the journal: /);
  expect(reason).toMatch(why);
  expect(rest).toMatch(/^Nothing was changed, and earlier data is safe\. /);
  expect(rest).toMatch(advice);
});

test("of several addresses that cannot be reached, the first says why", () => {
  const cause = new AggregateError([coded("ECONNREFUSED", "refused by ::1"), coded("ECONNREFUSED", "by 127.0.0.1")]);
  const { message, code } = databaseFailure(cause, "connect", "here");
  expect([code, message]).toEqual(["STORE_IO", expect.stringContaining("(here: Error: refused by ::1)")]);
});

test("what became of a session's records", () => {
  const cause = new Error("cut");
  const unknown = outcomeUnknown("s1", 7, cause);
  expect(unknown).toMatchObject({ code: "SYNC_FAILED", facts: { session: "s1", durable: 7 }, cause });
  expect(unknown.message).toMatch(/s1 is safe up to record 7; .*Open the session again/);
  const back = headMovedBack("s1", 9, 7);
  expect(back).toMatchObject({ code: "FILE_REPLACED", facts: { session: "s1", expected: 9, found: 7 } });
  expect(back.message).toMatch(/only up to record 7, but record 9 was acknowledged.*"power"/);
  const lost = leaseLost("s1", cause);
  expect(lost).toMatchObject({ code: "LEASE_LOST", facts: { session: "s1" }, cause });
  expect(lost.message).toMatch(/taken over session s1.*Open the session again/);
});
