import { describe, expect, test } from "vitest";
import type { SessionRecord } from "../../../src/conversation/records/records.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { findDialect } from "../../../src/dialects/index.ts";
import type { Json, NewRecord } from "../../../src/journal/record.ts";
import { sessionSummariser } from "../../../src/listing/fold-row.ts";
import { rowOf } from "../../../src/listing/row.ts";

const summariser = sessionSummariser(findDialect);
const AT = "2026-11-15T02:30:00.123Z";

/** Each step goes through JSON, as if the row had been written and read: so it is all the state there is. */
function fold(records: readonly (SessionRecord | NewRecord)[], from: Json = null, using = summariser): Json {
  let row = from;
  for (const [i, record] of records.entries()) {
    const line = JSON.parse(JSON.stringify({ ...record, seq: i + 1, at: AT, crc: "00000000" }));
    const next = using.add(row, line);
    // A store may leave out the others.
    if (using.concerns?.(row, line) === false) expect(next).toBe(row);
    row = JSON.parse(JSON.stringify(next)) as Json;
  }
  return row;
}

const created: SessionRecord = { kind: "session", dialect: "anthropic", cwd: "/work", app: "agent" };
const message = (id: string, text: string, turn = 1): SessionRecord => ({
  kind: "message",
  id,
  turn,
  step: id,
  message: { role: "user", content: text },
});
const turn = (number: number, text: string): SessionRecord[] => [
  { kind: "turn.started", turn: number, prompt: `p${number}` },
  message(`p${number}`, text, number),
];
const ended = (number: number, outcome: string): NewRecord => ({ kind: "turn.ended", turn: number, outcome });
const opened: NewRecord = { kind: "opened", unclean: true, cutBytes: 0 };

describe("what a list shows of a session", () => {
  test("attributes, first and last prompt, and the number of turns", () => {
    const parent = { session: "s1", call: "c1" };
    const row = fold([
      { kind: "segment" },
      { kind: "opened" },
      { ...created, labels: { team: "a" }, parent } as SessionRecord,
      ...turn(1, "Fix the build"),
      { kind: "message", id: "a", turn: 1, step: "a", message: { role: "assistant", content: "Done." } },
      ended(1, "completed"),
      ...turn(2, "And the tests"),
    ]);
    expect(row).toEqual({
      title: "Fix the build",
      titled: false,
      cwd: "/work",
      app: "agent",
      dialect: "anthropic",
      labels: { team: "a" },
      parent,
      parentSession: "s1",
      turns: 2,
      queued: 0,
      state: "open",
      prompt: "And the tests",
    });
    expect(Buffer.byteLength(JSON.stringify(row)), "a row is small: it is written at every end of a turn").toBeLessThan(
      400,
    );
  });

  test("a given title counts, also when it comes later; an empty one is none", () => {
    const named = fold([created, ...turn(1, "first"), { kind: "session", title: "Named" }]);
    expect(named).toMatchObject({ title: "Named", titled: true, cwd: "/work" });
    expect(fold(turn(2, "second"), named)).toMatchObject({ title: "Named", prompt: "second" });
    expect(fold([{ kind: "session", title: "\n" }], named)).toMatchObject({ title: "first", titled: false });
  });

  test("the first prompt that has words gives the title; one that is hidden from users never does", () => {
    const image: SessionRecord = {
      ...message("p1", ""),
      message: { role: "user", content: [{ type: "image", source: {} }] },
    } as SessionRecord;
    const hidden = { ...message("p2", "you are a cron job", 2), metadata: { hiddenFromUser: true } } as SessionRecord;
    const row = fold([
      created,
      { kind: "turn.started", turn: 1, prompt: "p1" },
      image,
      ended(1, "completed"),
      { kind: "turn.started", turn: 2, prompt: "p2" },
      hidden,
      ended(2, "completed"),
      ...turn(3, "words at last"),
    ]);
    expect(row).toMatchObject({ title: "words at last", turns: 3 });
  });

  test("only the prompt of the turn is read, not what else is in its unit", () => {
    const started: SessionRecord = { kind: "turn.started", turn: 1, prompt: "p1" };
    expect(fold([created, started, message("other", "a boundary"), message("p1", "the prompt")])).toMatchObject({
      title: "the prompt",
    });
  });

  test("a dialect that nobody knows, and one that throws, cost the title only", () => {
    expect(fold([{ ...created, dialect: "nobody's" } as SessionRecord, ...turn(1, "x")])).toMatchObject({
      title: "",
      turns: 1,
      state: "open",
    });
    const angry = {
      text: () => {
        throw new Error("no");
      },
    } as unknown as Dialect<unknown>;
    const using = sessionSummariser(() => angry);
    expect(fold([created, ...turn(1, "x")], null, using)).toMatchObject({ title: "", turns: 1 });
  });

  test("C28: a prompt of 50 MB gives a title of its first words", () => {
    const own = { text: (stored: { text: string }) => stored.text } as unknown as Dialect<unknown>;
    const using = sessionSummariser(() => own);
    const big = { image: "A".repeat(50 * 1024 * 1024), text: "look ".repeat(1024 * 1024) };
    const start = fold([created, { kind: "turn.started", turn: 1, prompt: "p1" }]);
    const row = using.add(start, { kind: "message", id: "p1", message: big, seq: 1, at: AT });
    expect(row).toMatchObject({ title: `${"look ".repeat(15).trim()} look…`.slice(0, 80) });
  });

  test("a dialect that needs the whole of a long string gets it", () => {
    const own = {
      decode: (stored: string) => JSON.parse(stored),
      text: ({ text }: { text: string }) => text,
    } as unknown as Dialect<unknown>;
    const using = sessionSummariser(() => own);
    const start = fold([created, { kind: "turn.started", turn: 1, prompt: "p1" }]);
    const stored = JSON.stringify({ padding: "x".repeat(10_000), text: "found" });
    expect(using.add(start, { kind: "message", id: "p1", message: stored, seq: 1, at: AT })).toMatchObject({
      title: "found",
    });
  });
});

describe("the state of the last turn", () => {
  const begun = [created, ...turn(1, "go")];
  const suspended: SessionRecord = { kind: "turn.suspended", turn: 1, reason: "approval" };
  const until: SessionRecord = { ...suspended, until: "2026-11-19T14:05:00.000Z" };
  const resumed: SessionRecord = { kind: "turn.resumed", turn: 1, n: 1 };
  const table: [name: string, records: (SessionRecord | NewRecord)[], state: string, turns: number][] = [
    ["no turn", [created], "idle", 0],
    ["a prompt only", begun, "open", 1],
    ["completed", [...begun, ended(1, "completed")], "idle", 1],
    ["left", [...begun, ended(1, "left")], "idle", 1],
    ["aborted", [...begun, ended(1, "aborted")], "cut", 1],
    ["failed", [...begun, ended(1, "failed")], "cut", 1],
    ["an outcome of a later version", [...begun, ended(1, "evaporated")], "cut", 1],
    ["suspended", [...begun, suspended], "waiting", 1],
    ["suspended, then opened by another writer", [...begun, suspended, opened], "waiting", 1],
    ["suspended, resumed", [...begun, suspended, resumed], "open", 1],
    ["asleep", [...begun, until], "waiting", 1],
    ["parked", [...begun, { ...suspended, parked: 5 }], "waiting", 1],
    ["aborted, resumed", [...begun, ended(1, "aborted"), resumed], "open", 1],
    ["signalled", [...begun, { kind: "signal", signal: "SIGTERM" }], "open", 1],
    ["killed, then opened by another writer", [...begun, opened], "cut", 1],
    ["killed, opened, resumed", [...begun, opened, resumed], "open", 1],
    ["closed with the turn open", [...begun, { kind: "closed" }], "cut", 1],
    ["left for a new prompt", [...begun, opened, ended(1, "left"), ...turn(2, "on")], "open", 2],
    ["a late end of an older turn", [...begun, ended(1, "left"), ...turn(2, "on"), ended(1, "completed")], "open", 2],
    ["a start whose record was lost", [created, { kind: "turn.resumed", turn: 4, n: 1 }], "open", 4],
  ];
  test.each(table)("%s", (_name, records, state, turns) => {
    expect(fold(records)).toMatchObject({ state, turns });
  });

  test("when it continues by itself, that workers gave up, and how often it was tried since its last progress", () => {
    const claimed: SessionRecord = { kind: "turn.claimed", turn: 1, n: 1 };
    const cut = [...begun, opened];
    const tried = (...records: (SessionRecord | NewRecord)[]): unknown => {
      const { wakeAt, parked, attempts } = rowOf(fold([...cut, ...records]));
      return { wakeAt, parked, attempts };
    };
    expect(tried(until)).toEqual({ wakeAt: "2026-11-19T14:05:00.000Z" });
    expect(tried({ ...until, until: "soon" } as SessionRecord)).toEqual({});
    expect(tried({ ...until, parked: 5 } as SessionRecord)).toEqual({ parked: true, attempts: 5 });
    expect(tried({ ...until, parked: 5 } as SessionRecord, until)).toEqual({ wakeAt: "2026-11-19T14:05:00.000Z" });
    expect(tried(claimed, resumed)).toEqual({ attempts: 1 });
    expect(tried(claimed, opened, claimed, resumed, opened, resumed)).toEqual({ attempts: 3 });
    const progress: NewRecord[] = [
      { kind: "tool.ended", id: "t", turn: 1, call: "c", name: "x" },
      { kind: "step.ended", turn: 1, call: "c", step: "s" },
      { kind: "message", id: "m9", turn: 1, step: "m9", message: { role: "user", content: "x" } },
    ];
    for (const record of progress) {
      expect(tried(resumed, opened, resumed, record), record.kind).toEqual({});
      expect(tried(resumed, { ...record, carried: true }), record.kind).toEqual({ attempts: 1 });
      expect(tried(resumed, { ...record, turn: 0 }), record.kind).toEqual({ attempts: 1 });
    }
    const aborted = (by: string): NewRecord => ({ ...ended(1, "aborted"), by });
    expect(tried(resumed, opened, resumed, aborted("close"))).toEqual({ attempts: 1 });
    expect(tried(resumed, opened, resumed, aborted("the user"))).toEqual({ attempts: 2 });
    expect(tried(resumed, ended(1, "completed"))).toEqual({});
  });
});

describe("the queue", () => {
  const put = (id: string): SessionRecord => ({ kind: "queue.put", id, prompt: { role: "user", content: id } });
  const take = (id: string): SessionRecord => ({ kind: "queue.take", id });
  const queued = (records: SessionRecord[], from: Json = null): number => rowOf(fold(records, from)).queued;

  test("C9: counts what waits, each once", () => {
    expect(queued([put("a"), put("b"), put("b"), take("a")])).toBe(1);
    expect(queued([put("a"), put("b"), take("a"), take("a"), take("never put")])).toBe(1);
    expect(queued([take("a")])).toBe(0);
  });

  test("a long queue keeps the row small, and the count right", () => {
    const ids = Array.from({ length: 500 }, (_, i) => `item ${i}`);
    const full = fold(ids.map(put));
    expect(rowOf(full).queued).toBe(500);
    expect(JSON.stringify(full).length).toBeLessThan(2000);
    expect(queued(ids.map(take), full)).toBe(0);
  });
});

describe("epochs", () => {
  const prompt = { id: "p3", turn: 3, step: "p3", message: { role: "user", content: "the third" }, first: AT };
  const epoch = (checkpoint: object, reason = "compaction", carried = 1): NewRecord => ({
    kind: "epoch",
    reason,
    carried,
    checkpoint: { dialect: "anthropic", started: [], notes: {}, usage: {}, usageByTurn: [], queue: [], ...checkpoint },
  });
  const carried = (id: string, role: string, content: string): NewRecord => ({
    kind: "message",
    id,
    turn: 1,
    step: id,
    carried: true,
    message: { role, content },
  });
  const turnOf = (more: object) => ({
    number: 3,
    startedAt: AT,
    lastAt: AT,
    resumes: 0,
    intents: false,
    prompt,
    ...more,
  });

  test("C38: in mid-turn, turns, queue and state are right for a reader that starts there", () => {
    const checkpoint = { turns: 3, turn: turnOf({}), queue: [{ id: "q1", prompt: {}, queuedAt: AT }] };
    const row = fold([epoch(checkpoint), created, carried("s", "user", "Summary of what was said")]);
    expect(row).toMatchObject({ turns: 3, queued: 1, state: "open", prompt: "the third", cwd: "/work", title: "" });
    expect(fold([{ kind: "queue.take", id: "q1" }, ended(3, "completed")], row)).toMatchObject({
      queued: 0,
      state: "idle",
    });
  });

  test("a reader that knows the row keeps the title, and agrees on the rest", () => {
    const before = fold([created, ...turn(1, "first"), ended(1, "left"), ...turn(2, "b"), ...turn(3, "the third")]);
    const row = fold([epoch({ turns: 3, turn: turnOf({}) }), created, carried("s", "user", "Summary")], before);
    expect(row).toEqual({ ...(before as object), filled: true });
  });

  test.each([
    [{ ended: { outcome: "completed" } }, "idle"],
    [{ ended: { outcome: "aborted", by: "user" } }, "cut"],
    [{ suspended: { reason: "approval" } }, "waiting"],
    [{ suspended: { reason: "x", until: "2026-11-19T14:05:00.000Z" }, attempts: 2, tried: true }, "waiting"],
    [{}, "open"],
  ])("the turn %j is %s", (more, state) => {
    expect(fold([epoch({ turns: 3, turn: turnOf(more) })])).toMatchObject({ state, turns: 3 });
  });

  test("how a turn was ended that did not complete, until the next begins or it goes on", () => {
    const by = (who: string): NewRecord => ({ ...ended(1, "aborted"), by: who });
    const cut = [created, ...turn(1, "Fix the build")];
    expect(fold([...cut, ended(1, "failed")])).toMatchObject({ state: "cut", ended: "failed" });
    expect(fold([...cut, by("the user")])).toMatchObject({ state: "cut", ended: "aborted" });
    const checkpoint = { turns: 1, turn: { number: 1, ended: by("the user") } };
    expect(fold([...cut, { kind: "epoch", checkpoint } as NewRecord])).toMatchObject({
      state: "cut",
      ended: "aborted",
    });
    for (const more of [
      [by("close")],
      [by("server")],
      [by("recorder")],
      [opened],
      [ended(1, "completed")],
      [ended(1, "failed"), ...turn(2, "again")],
      [ended(1, "failed"), { kind: "turn.resumed", turn: 1 }],
      [ended(1, "failed"), { kind: "turn.suspended", turn: 1, reason: "approval" }],
      [ended(1, "failed"), { kind: "epoch", checkpoint: { turns: 1 } }],
    ] as NewRecord[][])
      expect(fold([...cut, ...more])).not.toHaveProperty("ended");
  });

  test("no turn in the checkpoint: idle; no checkpoint that can be read: as it was", () => {
    const open = fold([created, ...turn(1, "x")]);
    expect(fold([epoch({ turns: 1 })], open)).toMatchObject({ state: "idle", turns: 1 });
    expect(fold([{ kind: "epoch", checkpoint: 7 }], open)).toMatchObject({ state: "open", turns: 1 });
  });

  test("C33: a fork has the title of the words that it begins with; a running turn in it was cut off", () => {
    const records = [
      epoch({ turns: 3, turn: turnOf({}) }, "fork", 3),
      created,
      { ...carried("b", "user", "made up"), synthetic: "boundary" },
      carried("a", "assistant", "Hello"),
      carried("u", "user", "the first words"),
      carried("v", "user", "later words"),
    ];
    expect(fold(records)).toMatchObject({ title: "the first words", titled: false, state: "cut", filled: true });
    const named = fold([epoch({ turns: 0 }, "fork", 1), { ...created, title: "Copy" } as NewRecord]);
    expect(named, "no other title is looked for").not.toHaveProperty("seeks");
    expect(fold([records[4]!], named)).toMatchObject({ title: "Copy", titled: true });
  });
});

describe("on every append", () => {
  test("what does not matter leaves the very same row", () => {
    const row = fold([created, ...turn(1, "x")]);
    for (const kind of [
      "segment",
      "draft",
      "tool.started",
      "tool.process",
      "tool.ended",
      "patch",
      "usage",
      "note",
      "repair",
      "new kind",
    ])
      expect(summariser.add(row, { kind, seq: 1, at: AT }), kind).toBe(row);
    expect(summariser.add(row, { ...(message("m", "y") as NewRecord), seq: 1, at: AT })).toBe(row);
    expect(summariser.add(null, { kind: "opened", seq: 1, at: AT })).toBe(null);
  });

  test("it keeps no reference into the record, and changes neither record nor row", () => {
    const labels = { team: "a" };
    const parent = { session: "s" };
    const row = summariser.add(null, { kind: "session", labels, parent, seq: 1, at: AT }) as object;
    labels.team = "b";
    parent.session = "t";
    expect(row).toMatchObject({ labels: { team: "a" }, parent: { session: "s" }, parentSession: "s" });
    const frozen = JSON.parse(JSON.stringify(row), (_, value) => Object.freeze(value)) as Json;
    for (const record of [...turn(1, "x"), ended(1, "failed"), opened])
      summariser.add(frozen, { ...(record as NewRecord), seq: 1, at: AT });
    expect(frozen).toEqual(row);
  });

  test("records and rows that hold anything else than they should never throw, and the row stays plain", () => {
    const kinds = ["session", "turn.started", "turn.resumed", "turn.suspended", "turn.ended", "message"];
    const members = ["title", "cwd", "labels", "parent", "turn", "prompt", "id", "message", "outcome", "by"];
    const values: unknown[] = [null, 5, -1, 1.5, "", "x", [], {}, { session: 5 }, { __proto__: 1 }, [null], true, "p"];
    for (const kind of [...kinds, "queue.put", "queue.take", "epoch", "opened", "closed"]) {
      for (const member of [...members, "checkpoint", "carried", "metadata", "dialect"]) {
        for (const value of values) {
          for (const row of [...values, { awaits: value, seeks: true, queue: value, dialect: "anthropic" }] as Json[]) {
            const record = { kind, id: "p", prompt: "p", carried: true, [member]: value, seq: 1, at: AT };
            const next = summariser.add(row, record);
            expect(JSON.parse(JSON.stringify(next))).toEqual(next);
          }
        }
      }
    }
    const deep = JSON.parse(`${"[".repeat(20_000)}"x"${"]".repeat(20_000)}`) as Json;
    const awaiting: Json = { awaits: "p", dialect: "anthropic" };
    expect(summariser.add(awaiting, { kind: "message", id: "p", message: deep, seq: 1, at: AT })).toMatchObject({
      title: "",
    });
  });

  test("the row stands where a turn comes to rest or goes on, and at a rename", () => {
    const kinds = ["turn.ended", "turn.suspended", "turn.resumed", "session"];
    for (const kind of kinds) expect(summariser.carries({ kind }), kind).toBe(true);
    for (const kind of ["message", "draft", "tool.started", "turn.started", "note", "opened"])
      expect(summariser.carries({ kind }), kind).toBe(false);
  });
});
