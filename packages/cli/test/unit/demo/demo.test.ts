import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import type { JournalRecord } from "holdfast";
import { describe, expect, test } from "vitest";
import { Acknowledgements } from "../../../src/demo/acknowledgements.ts";
import { type KillMoment, planKills } from "../../../src/demo/kill-plan.ts";
import { watchForMoment } from "../../../src/demo/kill-trigger.ts";
import { type Facts, type Receipt, receiptOf } from "../../../src/demo/receipt.ts";
import { receiptLines } from "../../../src/demo/receipt-words.ts";
import { TextScreen } from "../../../src/demo/screen.ts";
import { taskFor } from "../../../src/demo/task.ts";
import { WordWrap } from "../../../src/demo/word-wrap.ts";
import type { ChatEvent } from "../../../src/host/host.ts";
import type { Item } from "../../../src/transcript/item.ts";

const AT = "2026-11-15T00:00:00.000Z";
const CALL = { call: "c1", name: "edit", input: { path: "a.js" } };

/** A journal of one turn: a prompt, an answer with one call, its start and its result, and the end. */
const journal = [
  { kind: "message", id: "m1", turn: 1, message: { role: "user", content: "rename a" } },
  {
    kind: "message",
    id: "m2",
    turn: 1,
    message: {
      role: "assistant",
      content: [
        { type: "text", text: "I change it." },
        { type: "tool-call", toolCallId: CALL.call, toolName: CALL.name, input: CALL.input },
      ],
    },
  },
  { kind: "tool.started", turn: 1, call: "c1", message: "m2", index: 0, name: "edit" },
  { kind: "tool.ended", id: "r1", turn: 1, call: "c1", message: "m2", index: 0, name: "edit", value: "Changed a.js" },
  { kind: "epoch", reason: "compaction" },
  { kind: "turn.ended", turn: 1, outcome: "completed" },
];

/** Numbered without gaps, as by a store that drops records and says nothing. */
function numbered(records: readonly object[]): JournalRecord[] {
  return records.map((record, index) => ({ seq: index + 1, at: AT, ...record })) as JournalRecord[];
}

function item(one: object): ChatEvent {
  return { type: "item", item: { at: AT, turn: 1, ...one } as Item };
}

const said: ChatEvent[] = [
  item({ id: "m1", kind: "prompt", text: "rename a" }),
  item({ id: "m2", kind: "answer", text: "I change it." }),
  item({ id: "m2.1", kind: "call", ...CALL, state: "running" }),
  { type: "tool.started", ...CALL },
  item({ id: "m2.1", kind: "call", ...CALL, state: "done", output: "Changed a.js" }),
  { type: "tool.ended", ...CALL, failed: false, output: "Changed a.js" },
  { type: "replaced", reason: "compaction", items: 2 },
  { type: "turn.ended", outcome: "completed", denied: 0 },
];

function judged(change: Partial<Facts> = {}, events: readonly ChatEvent[] = said): Receipt {
  const acknowledged = new Acknowledgements();
  for (const event of events) acknowledged.hear(event, 1);
  return receiptOf({
    seed: 1,
    kills: [],
    missed: [],
    acknowledged,
    readings: [numbered(journal)],
    damage: [],
    requests: { checked: 1, violations: [] },
    strange: [],
    effects: ["released"],
    files: { here: { "a.js": "b" }, undisturbed: { "a.js": "b" } },
    agents: { sessions: 0, unfinished: 0 },
    taken: null,
    session: "s",
    ms: 1,
    ...change,
  });
}

describe("the receipt", () => {
  test("balances if all that was acknowledged is there", () => {
    const receipt = judged();
    expect(receipt).toMatchObject({ verdict: "kept", there: 6, lost: [], changed: [] });
    expect(receipt.acknowledged).toEqual({ records: 6, messages: 2, starts: 1, results: 1, compactions: 1, turns: 1 });
    expect(receiptLines(receipt).map(({ mark }) => mark)).not.toContain("NO");
  });

  test.each(journal.map((record, index) => ({ index, kind: record.kind })))(
    "P1: says so if the store dropped record $index ($kind) and numbers the others anew",
    ({ index }) => {
      const receipt = judged({ readings: [numbered(journal.toSpliced(index, 1))] });
      expect(receipt.verdict).toBe("broken");
      expect(receipt.lost).not.toEqual([]);
      expect(receipt.there).toBeLessThan(receipt.acknowledged.records);
    },
  );

  test("says so if a record came back with other words", () => {
    const changed = structuredClone(journal);
    Object.assign(changed[0]!, { message: { role: "user", content: "rename b" } });
    expect(judged({ readings: [numbered(changed)] })).toMatchObject({
      verdict: "broken",
      lost: [expect.stringContaining('the prompt "rename a" (message m1, acknowledged in life 1): not the same')],
    });
    const result = structuredClone(journal);
    Object.assign(result[3]!, { value: "Changed b.js" });
    expect(judged({ readings: [numbered(result)] }).lost).toEqual([
      expect.stringMatching(/the result of .*not the same/),
    ]);
  });

  test("says so if a record was there after one death and gone after the next, though it was made anew", () => {
    const before = numbered(journal.slice(0, 4));
    const after = [...before.slice(0, 3), { ...before[3]!, seq: 5 }, ...numbered(journal).slice(4)] as JournalRecord[];
    const receipt = judged({ readings: [before, after] });
    expect(receipt).toMatchObject({
      verdict: "broken",
      there: 5,
      changed: ["record 4 (tool.ended) is gone after death 1"],
    });
  });

  test.each<[string, Partial<Facts>]>([
    ["an effect that happened twice", { effects: ["released", "released"] }],
    ["an effect that never happened", { effects: [] }],
    [
      "a call that was started twice",
      { readings: [numbered([...journal.slice(0, 3), journal[2]!, ...journal.slice(3)])] },
    ],
    ["a file that differs", { files: { here: { "a.js": "c" }, undisturbed: { "a.js": "b" } } }],
    ["a file that is missing", { files: { here: {}, undisturbed: { "a.js": "b" } } }],
    ["a conversation that a provider refuses", { requests: { checked: 1, violations: ["ai-sdk-1"] } }],
    ["damage that the store found", { damage: ["Record 4 is missing."] }],
    ["words that nobody streamed", { strange: ["life 1"] }],
    ["a sub-agent that is not done", { agents: { sessions: 1, unfinished: 1 } }],
  ])("does not balance with %s", (_, change) => {
    const receipt = judged(change);
    expect(receipt.verdict).toBe("broken");
    expect(receiptLines(receipt).map(({ mark }) => mark)).toContain("NO");
  });

  test("says how to see it again: as it was started", () => {
    const said = (env: Record<string, string>): string => {
      const stream = new PassThrough({ encoding: "utf8" });
      new TextScreen(stream as unknown as NodeJS.WriteStream, env).receipt(judged());
      return stripVTControlCharacters(stream.read() as string);
    };
    expect(said({})).toContain("Repeat with: holdfast demo --kills 0 --seed 1\n");
    expect(said({ npm_lifecycle_event: "start" })).toContain("Repeat with: npm start -- --kills 0 --seed 1\n");
  });

  test("does not balance with a turn that was not completed", () => {
    expect(judged({}, said.slice(0, -1)).verdict).toBe("broken");
  });

  test("what was cut off while it streamed was never acknowledged", () => {
    const cut = item({ id: "m9", kind: "answer", text: "I ch", incomplete: true });
    expect(judged({}, [cut, ...said]).verdict).toBe("kept");
  });
});

describe("the plan of the kills", () => {
  test("the same for the same seed, the named moments in their order, and as many as were asked for", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const kills = 1 + (seed % 20);
      const plan = planKills(kills, seed);
      expect(planKills(kills, seed)).toEqual(plan);
      expect(plan).toHaveLength(kills);
      const named = plan.filter(({ at }) => at !== "random").map(({ at }) => at);
      expect(named).toEqual(["text", "tools", "compaction", "sub-agents"].slice(0, kills));
      // Else the command would be over before anybody aims at it.
      expect(plan.slice(0, 2).every(({ at }) => at !== "random")).toBe(true);
    }
    expect(planKills(12, 1)).not.toEqual(planKills(12, 2));
  });

  test("more kills have more work to hit", () => {
    expect(taskFor(40).prompt.split("\n").length).toBeGreaterThan(taskFor(5).prompt.split("\n").length);
  });

  const started = (call: string, name: string): ChatEvent => ({ type: "tool.started", call, name, input: {} });
  const text: ChatEvent = { type: "text", text: "word " };
  test.each<[KillMoment, ChatEvent[], number]>([
    [{ at: "text" }, [{ type: "reasoning", text: "a " }, ...Array(20).fill(text)], 14],
    [{ at: "tools" }, [started("1", "shell"), { type: "tool.output", call: "1", text: "x" }], 1],
    [{ at: "compaction", part: "switch", thenDeltas: 0 }, [text, { type: "compacting" }], 1],
    [{ at: "compaction", part: "summary", thenDeltas: 3 }, [text, { type: "compacting" }], 1],
    [
      { at: "compaction", part: "switch", thenDeltas: 0 },
      [text, { type: "replaced", reason: "compaction", items: 1 }],
      1,
    ],
    [{ at: "sub-agents", thenDeltas: 1 }, [started("1", "task"), started("1", "task"), started("2", "task")], 2],
    [{ at: "random", events: 2, thenDeltas: 0 }, [text, text, text], 1],
  ])("hits what it says: %j", (aim, events, at) => {
    const sight = watchForMoment(aim);
    const seen = events.map((event) => sight(event) !== null);
    expect(seen.indexOf(true)).toBe(at);
    expect(seen.filter(Boolean)).toHaveLength(1);
  });
});

describe("words that stream in", () => {
  const shown = (isLive: boolean, ...pieces: string[]): string[] => {
    const written: string[] = [];
    const flow = new WordWrap((piece) => written.push(piece), 12, isLive);
    for (const piece of pieces) flow.say("say", piece, (one) => one, "  ");
    flow.close();
    return written;
  };

  test("are wrapped without spaces at the ends of lines, wherever they are cut", () => {
    const whole = shown(false, "one two three four\n\nfive").join("");
    expect(whole).toBe("  one two\n  three four\n  five\n");
    expect(shown(false, "one", " two", " three ", "four\n", "\nfive").join("")).toBe(whole);
    expect(shown(true, "one", " two", " three ", "four\n", "\nfive").join("")).toBe(whole);
  });

  test("come one by one on a terminal, line by line elsewhere", () => {
    expect(shown(true, "one ", "two").length).toBeGreaterThan(2);
    expect(shown(false, "one ", "two")).toEqual(["  one two\n"]);
  });
});
