import { describe, expect, test } from "vitest";
import { listRecords, type NewItem } from "../../../src/langgraph/list-records.ts";
import type { ListRecord, StoredValue } from "../../../src/langgraph/records.ts";
import { ThreadState } from "../../../src/langgraph/state.ts";

/** How the items of a list are divided into records, and read back from them. */

const CHARS_MAX = 4 * 1024 * 1024;

const value = (text: string): StoredValue => ({ j: text });
const fresh = (text: string): NewItem => ({ value: value(text), place: null });
/** An item whose JSON has this many characters. */
const sized = (letter: string, chars: number): NewItem =>
  fresh(letter.repeat(chars - JSON.stringify(value("")).length));
const copied = (text: string, list: number, index: number): NewItem => ({ value: value(text), place: [list, index] });

/** What a thread that has these records reads as this list. */
function read(records: readonly ListRecord[], list: number): readonly StoredValue[] | undefined {
  const state = new ThreadState();
  for (const record of records) state.add(record);
  return state.list(list);
}

describe("the records of a list", () => {
  test("a list that begins has a record even if it is empty; one that gains nothing has none", () => {
    expect(listRecords(3, 0, [])).toEqual([{ kind: "graph.list", list: 3, length: 0, parts: [] }]);
    expect(listRecords(3, 2, [])).toEqual([]);
  });

  test("new items are one part, and so is a run of copied ones", () => {
    const items = [
      copied("a", 1, 0),
      copied("b", 1, 1),
      // Not the next of that list, and not of that list.
      copied("d", 1, 3),
      copied("e", 2, 4),
      fresh("f"),
      fresh("g"),
      copied("c", 1, 2),
    ];
    const parts = [[1, 0, 2], [1, 3, 1], [2, 4, 1], { items: [value("f"), value("g")] }, [1, 2, 1]];
    expect(listRecords(3, 7, items)).toEqual([{ kind: "graph.list", list: 3, length: 7, parts }]);
  });

  test("a record that is full is followed by another, which says how long the list is by then", () => {
    const half = CHARS_MAX / 2;
    const items = [
      copied("a", 1, 0),
      sized("b", half),
      sized("c", half),
      // Two halves fill a record, and this one is too much.
      fresh("d"),
      copied("e", 1, 1),
      copied("f", 1, 2),
      sized("g", CHARS_MAX + 1),
      copied("h", 1, 3),
      sized("i", CHARS_MAX + 1),
    ];
    const source = listRecords(1, 0, ["a", "e", "f", "h"].map(fresh));
    const begun = listRecords(2, 0, [fresh("x"), fresh("y")]);
    const records = listRecords(2, 2, items);
    expect(records.map(({ length, parts }) => [length, parts.length])).toEqual([
      [2, 2],
      [6, 2],
      [9, 2],
    ]);
    expect(records[1]!.parts[0]).toEqual([1, 1, 2]);
    const expected = [value("x"), value("y"), ...items.map((item) => item.value)];
    expect(read([...source, ...begun, ...records], 2)).toEqual(expected);
  });

  test("a list that begins with more than a record holds is read whole, and no empty record follows", () => {
    const items = [sized("a", CHARS_MAX + 1), sized("b", CHARS_MAX), fresh("c"), sized("d", CHARS_MAX + 1)];
    const records = listRecords(1, 0, items);
    expect(records.map(({ length }) => length)).toEqual([0, 1, 3]);
    expect(read(records, 1)).toEqual(items.map((item) => item.value));
  });

  test("if a record is lost, the list ends where it was whole", () => {
    const items = ["a", "b", "c"].map((letter) => sized(letter, CHARS_MAX + 1));
    const [first, , third] = listRecords(1, 0, items);
    expect(read([first!, third!], 1)).toEqual([items[0]!.value]);
  });
});
