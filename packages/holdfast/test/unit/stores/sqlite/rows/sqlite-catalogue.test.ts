import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import { allSessions, findSession, isKnown, ownerOf } from "../../../../../src/stores/sqlite/rows/catalogue.ts";
import type { SessionRow } from "../../../../../src/stores/sqlite/rows/session-row.ts";
import { AT } from "../../../journal/journals.ts";
import { ToldRows } from "./sqlite-told-rows.ts";

/** P9: the table, its indexes and the journal each say which sessions there are. */

const [ID, OTHER] = [newId(), newId()];
const found: SessionRow = {
  ...{ key: 2, id: ID, at: AT, stamp: AT, head: 2, closed: false, summary: {}, isTrashed: false },
};

/** Two sessions: OTHER has key 1, ID has key 2. */
function told(): ToldRows {
  const rows = new ToldRows();
  rows.add(1, OTHER);
  rows.add(2, ID);
  return rows;
}

type Change = (rows: ToldRows) => void;

/** One place is wrong, and the session is found as it was. */
const wrong: [what: string, change: Change, Partial<SessionRow>][] = [
  ["the index by id lacks it", (rows) => rows.byId.delete(ID), {}],
  ["the index by id cannot be read", (rows) => rows.damaged.add("keyOf"), {}],
  ["the index by id leads to another session", (rows) => rows.byId.set(ID, 1), {}],
  ["the index by id leads to an impossible key", (rows) => rows.byId.set(ID, 0), {}],
  ["its row has another id", (rows) => rows.setRow(2, { id: newId() }), {}],
  ["its row has no id", (rows) => rows.setRow(2, { id: "" }), {}],
  ["its row says that it was deleted", (rows) => rows.setRow(2, { isTrashed: true }), { isTrashed: true }],
  ["its lines cannot be read", (rows) => rows.damaged.add("readLine"), {}],
  ["it has no lines", (rows) => rows.lines.delete(2), {}],
];

describe("finding a session", () => {
  test.each(wrong)("%s", (_, change, differs) => {
    const rows = told();
    rows.isSound = false;
    change(rows);
    expect(findSession(rows.rows, ID)).toEqual({ ...found, ...differs });
  });

  test("takes no walk through the table if table and index agree", () => {
    const rows = told();
    rows.isSound = false;
    expect(findSession(rows.rows, ID)).toEqual(found);
    rows.isSound = true;
    expect(findSession(rows.rows, newId())).toBeNull();
    expect(rows.walks).toEqual([]);
    expect([isKnown(rows.rows, ID), isKnown(rows.rows, newId())]).toEqual([true, false]);
  });

  test("one that was deleted is not found", () => {
    const rows = told();
    rows.setRow(2, { isTrashed: true });
    rows.byId.delete(ID);
    rows.indexed.delete(2);
    for (const isSound of [true, false]) {
      rows.isSound = isSound;
      expect(findSession(rows.rows, ID)).toBeNull();
    }
  });

  test.each<[string, Change]>([
    ["its row is gone", (rows) => rows.table.delete(2)],
    ["its row has another key", (rows) => rows.table.delete(2) && rows.table.set(7, { ...found, key: 7 })],
    ["the table cannot be read", (rows) => rows.damaged.add("session").add("sessions")],
  ])("its indexes and its journal are enough: %s", (_, change) => {
    const rows = told();
    change(rows);
    const lost = { ...found, at: "", stamp: "", head: 0, summary: undefined };
    expect(findSession(rows.rows, ID)).toEqual(lost);
    rows.byId.delete(ID);
    rows.isSound = false;
    expect(findSession(rows.rows, ID)).toEqual(lost);
    expect(findSession(rows.rows, newId())).toBeNull();
  });
});

describe("listing all sessions", () => {
  test.each(wrong)("%s", (_, change, differs) => {
    const rows = told();
    change(rows);
    const sessions = allSessions(rows.rows);
    expect(sessions.map(({ id }) => id)).toEqual([OTHER, ID]);
    expect(sessions[1]).toEqual({ ...found, ...differs });
  });

  test("deleted sessions and those without a name are left out", () => {
    const rows = told();
    rows.add(3, newId(), [{}], { isTrashed: true });
    rows.indexed.delete(3);
    rows.add(4, "");
    rows.lines.delete(4);
    expect(allSessions(rows.rows).map(({ id }) => id)).toEqual([OTHER, ID]);
    // Whether it was deleted, then only the row says.
    rows.damaged.add("indexedKeys");
    expect(allSessions(rows.rows).map(({ id }) => id)).toEqual([OTHER, ID]);
  });
});

test("the owner of a journal is in the first header that is whole", () => {
  const rows = told();
  expect(ownerOf(rows.rows, 2)).toBe(ID);
  // It is known where the first one is.
  rows.segments.delete(2);
  expect(ownerOf(rows.rows, 2)).toBe(ID);
  rows.setLine(2, 1, null);
  expect(ownerOf(rows.rows, 2)).toBeNull();
  rows.segments.set(2, [
    { number: 1, epoch: 1, first: 1 },
    { number: 2, epoch: 2, first: 2 },
    { number: 3, epoch: 3, first: 5 },
  ]);
  // A record that is no header, and one that names no session.
  rows.setLine(2, 2, { kind: "note", session: OTHER });
  rows.setLine(2, 5, { kind: "segment", session: 7 });
  expect(ownerOf(rows.rows, 2)).toBeNull();
  rows.setLine(2, 5, { kind: "segment", session: ID });
  expect(ownerOf(rows.rows, 2)).toBe(ID);
  rows.damaged.add("readSegments");
  expect(ownerOf(rows.rows, 2)).toBeNull();
});
