import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import {
  allSessions,
  damageOf,
  findSession,
  isKnown,
  ownerOf,
} from "../../../../../src/stores/sqlite/rows/catalogue.ts";
import type { SessionRow } from "../../../../../src/stores/sqlite/rows/session-row.ts";
import { AT } from "../../../journal/journals.ts";
import { ToldRows } from "./sqlite-told-rows.ts";

/** P9: the table, the index by id, the index by time and the journal each say which sessions there are. */

const [ID, OTHER] = [newId(), newId()];
const EARLIER = "2020-01-01T00:00:00.000Z";
const STAMP = "2030-01-01T00:00:00.000Z";
const found: SessionRow = { key: 2, id: ID, at: AT, stamp: AT, head: 2, closed: false, summary: {} };

/** Two sessions: OTHER has key 1, ID has key 2. */
function told(): ToldRows {
  const rows = new ToldRows();
  rows.add(1, OTHER);
  rows.add(2, ID);
  return rows;
}

type Change = (rows: ToldRows) => void;

/** As if its row did not exist. */
const withoutRow: Change = (rows) => rows.table.delete(2);
const withoutLines: Change = (rows) => rows.lines.delete(2);

/** One place is wrong, and the session is found as it was. */
const wrong: [what: string, change: Change, Partial<SessionRow>][] = [
  ["nothing", () => {}, {}],
  ["the index by id lacks it", (rows) => rows.drop(rows.byId, 2), {}],
  ["the index by id cannot be read", (rows) => rows.damaged.add("keyOf").add("entriesById"), {}],
  ["the index by time lacks it", (rows) => rows.drop(rows.byTime, 2), {}],
  ["the index by time cannot be read", (rows) => rows.damaged.add("entriesByTime"), {}],
  ["its row has another id", (rows) => rows.setRow(2, { id: newId() }), {}],
  ["its row has no id", (rows) => rows.setRow(2, { id: null }), {}],
  ["its row says that it was deleted", (rows) => rows.setRow(2, { isTrashed: true }), {}],
  ["its row is gone", withoutRow, { summary: undefined }],
  [
    "the table cannot be read",
    (rows) => rows.damaged.add("tableRow").add("tableRows") && withoutRow(rows),
    { summary: undefined },
  ],
  ["a walk through the table ends early", (rows) => rows.damaged.add("tableRows"), {}],
  ["it has no lines", withoutLines, {}],
  ["its lines cannot be read", (rows) => rows.damaged.add("readLine"), {}],
];

describe("finding a session", () => {
  test.each(wrong)("%s", (_, change, differs) => {
    const rows = told();
    change(rows);
    expect(findSession(rows.rows, ID)).toEqual({ ...found, ...differs });
    expect(findSession(rows.rows, ID)?.id).toBe(ID);
  });

  test("takes no walk through the catalogue if table and index agree", () => {
    const rows = told();
    expect(findSession(rows.rows, ID)).toEqual(found);
    expect(rows.walks).toEqual([]);
    expect([isKnown(rows.rows, ID), isKnown(rows.rows, newId())]).toEqual([true, false]);
  });

  test.each([
    ["nobody has ever heard of it", (rows) => rows.drop(rows.byId, 2) ?? rows.drop(rows.byTime, 2) ?? withoutRow(rows)],
    ["only its row is left", (rows) => rows.drop(rows.byId, 2) ?? rows.drop(rows.byTime, 2)],
    ["only the index by id has it", (rows) => rows.drop(rows.byTime, 2) ?? withoutRow(rows)],
    ["only the index by time has it", (rows) => rows.drop(rows.byId, 2) ?? withoutRow(rows)],
    [
      "it was deleted, and one index still has it",
      (rows) => rows.drop(rows.byId, 2) ?? rows.setRow(2, { isTrashed: true }),
    ],
    [
      "the index by id has it with an impossible key",
      (rows) => rows.drop(rows.byTime, 2) ?? withoutRow(rows) ?? rows.byId.push({ key: 0, id: ID, at: null }),
    ],
    [
      "its journal says that it is another one",
      (rows) => rows.setLine(2, 1, { kind: "segment", session: newId() }) ?? rows.setRow(2, { id: null }),
    ],
  ] as [string, Change][])("there is none: %s", (_, change) => {
    const rows = told();
    change(rows);
    expect(findSession(rows.rows, ID)).toBeNull();
  });

  test.each(["tableRows", "entriesByTime"])("it may exist if %s ends at a damaged page", (call) => {
    const rows = told();
    rows.damaged.add(call);
    expect(() => findSession(rows.rows, newId())).toThrow(expect.objectContaining({ errcode: 11 }));
    // One that is there is found all the same.
    rows.setRow(2, { isTrashed: true });
    expect(findSession(rows.rows, ID)).toEqual(found);
  });

  test("the first session of a database is found like any other, and one of which little is left", () => {
    const rows = told();
    rows.drop(rows.byId, 1);
    expect(findSession(rows.rows, OTHER)).toEqual({ ...found, key: 1, id: OTHER });
    withoutRow(rows);
    rows.damaged.add("newestSeq");
    expect(findSession(rows.rows, ID)).toMatchObject({ key: 2, head: 0, closed: false });
  });

  test("the index by id leads to the key of another session", () => {
    const rows = told();
    rows.drop(rows.byId, 2);
    rows.byId.push({ key: 1, id: ID, at: null });
    expect(findSession(rows.rows, ID)).toEqual(found);
    expect(findSession(rows.rows, OTHER)).toEqual({ ...found, key: 1, id: OTHER });
  });

  test("the index by id leads to a row that was deleted, and belongs to another", () => {
    const rows = told();
    rows.add(3, newId(), [{}], { isTrashed: true });
    rows.drop(rows.byId, 2);
    rows.byId.push({ key: 3, id: ID, at: null });
    expect(findSession(rows.rows, ID)).toEqual(found);
  });
});

describe("listing all sessions", () => {
  test.each(wrong)("%s", (_, change, differs) => {
    const rows = told();
    change(rows);
    const sessions = allSessions(rows.rows).sort((a, b) => a.key - b.key);
    expect(sessions.map(({ id }) => id)).toEqual([OTHER, ID]);
    expect(sessions[1]).toEqual({ ...found, ...differs });
  });

  test("entries with impossible keys, deleted sessions and those with no name are left out", () => {
    const rows = told();
    rows.byId.push({ key: 0, id: newId(), at: null });
    rows.byTime.push({ key: 0, id: newId(), at: AT });
    rows.table.set(0, { ...rows.table.get(1)!, key: 0 });
    rows.add(3, newId(), [{}], { isTrashed: true });
    for (const index of [rows.byId, rows.byTime]) rows.drop(index, 3);
    rows.add(4, newId());
    rows.lines.delete(4);
    for (const index of [rows.byId, rows.byTime]) rows.drop(index, 4);
    for (const index of [rows.byId, rows.byTime]) index.push({ key: 4, id: null, at: null });
    rows.setRow(4, { id: null });
    expect(allSessions(rows.rows).map(({ id }) => id)).toEqual([OTHER, ID]);
  });

  test("without a header, two of the three decide what it is called; or else the index by id", () => {
    const rows = told();
    rows.lines.delete(2);
    const name = (): string => allSessions(rows.rows).find(({ key }) => key === 2)!.id;
    const [a, b] = [newId(), newId()];
    const call = (byId: string | null, byTime: string | null, row: string | null): string => {
      for (const index of [rows.byId, rows.byTime]) rows.drop(index, 2);
      rows.byId.push({ key: 2, id: byId, at: null });
      rows.byTime.push({ key: 2, id: byTime, at: AT });
      rows.setRow(2, { id: row });
      return name();
    };
    expect([call(a, a, b), call(a, b, a), call(b, a, a)]).toEqual([a, a, a]);
    expect([call(a, b, ID), call(null, b, ID), call(null, null, ID)]).toEqual([a, b, ID]);
  });

  test.each([
    ["the record's, whatever the row says", { at: EARLIER }, {}, { at: AT, stamp: AT }],
    ["the record's, and sorted as table and index say", { at: STAMP }, { indexed: STAMP }, { at: AT, stamp: STAMP }],
    [
      "the row's own, if the record is damaged",
      { at: STAMP, written: EARLIER },
      { rot: true },
      { at: EARLIER, stamp: STAMP },
    ],
    ["the row's stamp, if it has no other", { at: STAMP }, { rot: true }, { at: STAMP, stamp: STAMP }],
    [
      "that of the index, if the row has none",
      { at: null },
      { rot: true, indexed: STAMP },
      { at: STAMP, stamp: STAMP },
    ],
    ["the record's, if the index has another", { at: null }, { indexed: STAMP }, { at: AT, stamp: STAMP }],
    ["the record's for both, if nobody else says anything", { at: null }, { indexed: null }, { at: AT, stamp: AT }],
    ["none, if nobody says anything", { at: null }, { rot: true, indexed: null }, { at: "" }],
    ["of the newest record, if the row has no head", { head: null }, {}, { head: 2, at: AT }],
    ["of no record, if there is none", { head: null }, { noLines: true }, { head: 0, at: AT }],
  ] as [string, object, { rot?: boolean; indexed?: string | null; noLines?: boolean }, Partial<SessionRow>][])(
    "the time is %s",
    (_, row, { rot, indexed, noLines }, expected) => {
      const rows = told();
      rows.setRow(2, row);
      if (rot) rows.setLine(2, 2, null);
      if (noLines) rows.lines.delete(2);
      if (indexed !== undefined) {
        rows.drop(rows.byTime, 2);
        rows.byTime.push({ key: 2, id: ID, at: indexed });
      }
      expect(allSessions(rows.rows).find(({ key }) => key === 2)).toMatchObject(expected);
    },
  );

  test("closed or not, and the summary, are the row's", () => {
    const rows = told();
    rows.setRow(2, { closed: true, summary: { title: "x" } });
    expect(allSessions(rows.rows)[1]).toMatchObject({ closed: true, summary: { title: "x" } });
  });
});

describe("what verify says about the catalogue", () => {
  const partsOf = (rows: ToldRows): string[] => damageOf(rows.rows, found).map(({ segment }) => segment);

  test.each([
    ["nothing is wrong", () => {}, []],
    ["nothing, if the record of its head is damaged", (rows) => rows.setLine(2, 2, null), []],
    ["the row has another id", (rows) => rows.setRow(2, { id: OTHER }), ["sessions"]],
    ["the row says that it was deleted", (rows) => rows.setRow(2, { isTrashed: true }), ["sessions"]],
    ["the row has no head", (rows) => rows.setRow(2, { head: null }), ["sessions"]],
    ["the row has no time", (rows) => rows.setRow(2, { at: null }), ["sessions", "sessions_by_time"]],
    ["the row has another time", (rows) => rows.setRow(2, { written: EARLIER }), ["sessions"]],
    ["the row is missing", withoutRow, ["sessions"]],
    ["the row cannot be read", (rows) => rows.damaged.add("tableRow"), ["sessions"]],
    ["the index by id lacks it", (rows) => rows.drop(rows.byId, 2), ["sessions_by_id"]],
    ["the index by id cannot be read", (rows) => rows.damaged.add("keyOf"), ["sessions_by_id"]],
    ["the index by time lacks it", (rows) => rows.drop(rows.byTime, 2), ["sessions_by_time"]],
    ["the index by time cannot be read", (rows) => rows.damaged.add("isTimed"), ["sessions_by_time"]],
    ["the index of open sessions lacks it", (rows) => rows.openKeys.delete(2), ["sessions_open"]],
    [
      "the index of open sessions has it, and it is closed",
      (rows) => rows.setRow(2, { closed: true }),
      ["sessions_open"],
    ],
    ["the index of open sessions cannot be read", (rows) => rows.damaged.add("isOpen"), ["sessions_open"]],
  ] as [string, Change, string[]][])("%s", (_, change, expected) => {
    const rows = told();
    change(rows);
    expect(partsOf(rows)).toEqual(expected);
  });

  test("a time that differs from the sort key is compared with the record's", () => {
    const rows = told();
    rows.setRow(2, { at: STAMP, written: AT });
    rows.drop(rows.byTime, 2);
    rows.byTime.push({ key: 2, id: ID, at: STAMP });
    expect(damageOf(rows.rows, found)).toEqual([]);
    rows.setRow(2, { written: null });
    expect(damageOf(rows.rows, found)).toEqual([{ segment: "sessions", offset: 0, bytes: 0, why: "corrupt" }]);
  });
});

describe("the owner of a journal", () => {
  test("is in the first header that is whole", () => {
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
});
