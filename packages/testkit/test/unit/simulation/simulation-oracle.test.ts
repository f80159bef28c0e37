import { describe, expect, test } from "vitest";
import { keptElsewhere } from "../../../src/simulation/kept.ts";
import {
  afterCrash,
  attempt,
  compare,
  type Entry,
  emptyLedger,
  type Ledger,
  type RecoveredRecord,
} from "../../../src/simulation/ledger.ts";

/** The oracle of the simulation: each way in which `acknowledged ⊆ recovered ⊆ attempted` can be broken is told. */

const pad = (record: { readonly n: string }): string => `pad of ${record.n}`;

function entry(state: Entry["state"], kind: Entry["kind"], ...names: string[]): Entry {
  return { kind, state, records: names.map((n) => ({ n, bytes: 1 })) };
}

function ledger(...entries: Entry[]): Ledger {
  return { ...emptyLedger, entries, existence: "yes" };
}

/** Records with these names at seqs 1, 2, …; the current epoch begins at `from`. */
function found(names: readonly string[], from = 0) {
  const history = names.map((n, at): RecoveredRecord => ({ n, seq: at + 1, pad: pad({ n }) }));
  return { history, current: history.slice(from), head: history.length };
}

function problems(known: Ledger, names: readonly string[] | null, from?: number): readonly string[] {
  return compare(known, names === null ? null : found(names, from), pad).problems;
}

describe("the oracle is content with", () => {
  test.each([
    [
      "everything that was acknowledged",
      ledger(entry("power", "first", "a"), entry("process", "unit", "b", "c")),
      ["a", "b", "c"],
    ],
    ["an unanswered unit that is there", ledger(entry("power", "first", "a"), entry("open", "unit", "b")), ["a", "b"]],
    ["an unanswered unit that is not", ledger(entry("power", "first", "a"), entry("open", "unit", "b")), ["a"]],
    [
      "what was refused, and is not there",
      ledger(entry("power", "first", "a"), entry("out", "unit", "b"), entry("power", "unit", "c")),
      ["a", "c"],
    ],
  ] as const)("%s", (_, known, names) => {
    expect(problems(known, names)).toEqual([]);
  });

  test("an epoch, whose records are the current ones", () => {
    expect(
      problems(
        ledger(entry("power", "first", "a"), entry("power", "epoch", "e", "f"), entry("power", "unit", "g")),
        ["a", "e", "f", "g"],
        1,
      ),
    ).toEqual([]);
  });

  test("a session that was never there, or may have been deleted", () => {
    expect(problems({ ...emptyLedger }, null)).toEqual([]);
    expect(problems({ ...ledger(entry("power", "first", "a")), existence: "maybe" }, null)).toEqual([]);
  });
});

describe("the oracle tells of", () => {
  test.each([
    [
      "a loss",
      ledger(entry("power", "first", "a"), entry("power", "unit", "b")),
      ["a"],
      "unit b was acknowledged (power) and is missing",
    ],
    [
      "a loss after SIGKILL",
      ledger(entry("power", "first", "a"), entry("process", "unit", "b")),
      ["a"],
      "unit b was acknowledged (process) and is missing",
    ],
    [
      "half a unit",
      ledger(entry("power", "first", "a"), entry("open", "unit", "b", "c")),
      ["a", "b"],
      "unit b…c is there in part: 1 of 2",
    ],
    [
      "half an epoch (C7)",
      ledger(entry("power", "first", "a"), entry("open", "epoch", "b", "c")),
      ["a", "b"],
      "epoch b…c is there in part: 1 of 2",
    ],
    ["a record twice", ledger(entry("power", "first", "a")), ["a", "a"], "record a is there twice"],
    ["a record from nowhere", ledger(entry("power", "first", "a")), ["a", "x"], "record x was never attempted"],
    [
      "what was refused and is there",
      ledger(entry("power", "first", "a"), entry("out", "unit", "b")),
      ["a", "b"],
      "unit b was refused, or was gone before, and is there",
    ],
    [
      "a gap",
      ledger(entry("power", "first", "a"), entry("open", "unit", "b"), entry("open", "unit", "c")),
      ["a", "c"],
      "unit c is there though unit b before it is not",
    ],
    [
      "another order",
      ledger(entry("power", "first", "a"), entry("power", "unit", "b"), entry("power", "unit", "c")),
      ["a", "c", "b"],
      "unit b is out of order: place 2 and not 1",
    ],
  ] as const)("%s", (_, known, names, problem) => {
    expect(problems(known, names)).toContain(problem);
  });

  test("a session that is gone, and one that is back", () => {
    expect(problems(ledger(entry("power", "first", "a")), null)).toEqual(["the session is gone"]);
    expect(problems({ ...ledger(entry("power", "first", "a")), existence: "no" }, ["a"])).toContain(
      "a session is there that was never created, or was deleted",
    );
  });

  test("the old epoch in place of the new one", () => {
    const known = ledger(entry("power", "first", "a"), entry("power", "epoch", "e"));
    expect(problems(known, ["a", "e"], 0)).toEqual(["the current epoch is [a e] and not [e]"]);
  });

  test("another seq than was answered, an altered record, a head below what was called durable", () => {
    const known = { ...ledger({ ...entry("power", "first", "a"), seq: 4 }), durable: 3 };
    const session = { ...found(["a"]), history: [{ n: "a", seq: 1, pad: "x" }] };
    expect(compare(known, session, pad).problems).toEqual([
      "first a was answered with seq 4 and has 1",
      "record a was altered",
      "the journal called seq 3 durable, and ends at 1",
    ]);
  });
});

describe("the ledger", () => {
  test("a power cut puts what was acknowledged under process in doubt, SIGKILL does not", () => {
    const known = ledger(entry("process", "unit", "b"), entry("power", "unit", "c"));
    expect(afterCrash(known, "power").entries.map(({ state }) => state)).toEqual(["open", "power"]);
    expect(afterCrash(known, "kill").entries.map(({ state }) => state)).toEqual(["process", "power"]);
  });

  test("what a recovery has shown is expected from then on, and what it has not is never expected again", () => {
    const known = ledger(entry("power", "first", "a"), entry("open", "unit", "b"), entry("open", "unit", "c"));
    const after = compare(known, found(["a", "b"]), pad).ledger;
    expect(after.entries.map(({ state }) => state)).toEqual(["power", "power", "out"]);
    expect(problems(after, ["a"])).toContain("unit b was acknowledged (power) and is missing");
    expect(problems(after, ["a", "b", "c"])).toContain("unit c was refused, or was gone before, and is there");
  });

  test("a second attempt takes its place at the end", () => {
    const known = attempt(ledger(entry("out", "unit", "a"), entry("power", "unit", "b")), entry("open", "unit", "a"));
    expect(problems(known, ["b", "a"])).toEqual([]);
  });
});

describe("P2: what is cut off is kept", () => {
  const folder = "/store/sessions/id";
  const tree = (files: Record<string, string>): Map<string, Uint8Array> =>
    new Map(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, Buffer.from(text)]));
  const before = tree({ "000001.jsonl": "whole\ntorn" });

  test.each([
    ["nothing was cut", tree({ "000001.jsonl": "whole\ntorn and more" }), 0],
    ["the tail is in quarantine", tree({ "000001.jsonl": "whole\nnext\n", "quarantine/x.torn": "torn" }), 0],
    ["a new record begins like the tail", tree({ "000001.jsonl": "whole\ntop\n", "quarantine/x.torn": "torn" }), 0],
    ["the segment is packed", tree({ "000001.jsonl.zst": "…" }), 0],
    ["the tail is nowhere", tree({ "000001.jsonl": "whole\n" }), 1],
    ["only a part is in quarantine", tree({ "000001.jsonl": "whole\n", "quarantine/x.torn": "rn" }), 1],
    ["the segment is gone", tree({}), 1],
  ] as const)("%s", (_, after, lost) => {
    expect(keptElsewhere(before, after, "id")).toHaveLength(lost);
  });
});
