import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { Conversation } from "../../../src/conversation/conversation.ts";
import { sessionSummariser } from "../../../src/listing/fold-row.ts";
import { place } from "../../place.ts";
import { voices } from "../dialects/dialect-voices.ts";
import type { Made } from "../sync/sync-agents.ts";

/**
 * Names and ids that every object has already: whoever looks them up in a plain object finds something that nobody put
 * there.
 */
const NAMES = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"];

const silent = { reasoning: "none", text: null, after: null, provider: "none" } as const;

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (_name, voice) => {
  test.each(NAMES)("a tool, a call, a message, a note, a label and a member of metadata named %s", async (name) => {
    using here = place();
    const store = await openStore(here.path, { durability: "process", recordsToolStarts: true });
    const own = (value: string): Made => Object.fromEntries([[name, value]]);
    const session = await store.create<Made>({ dialect: voice.dialect as Made, labels: own("label") });
    const turn = await session.startTurn(voice.user("go"), { id: name, metadata: own("member") });
    const made = { id: name, name, input: "whole" } as const;
    await turn.append(voice.step({ ...silent, calls: [made, { ...made, id: "other" }] }, 1) as Made);
    const called = session.entries.slice(1).flatMap(({ message }) => voice.dialect.calls(message));
    expect(called.map((call) => call.name)).toEqual([name, name]);
    expect(await turn.tool(called[0]!.id, () => own("value"))).toEqual({ value: own("value") });
    await session.note(name, own("note"));
    await session.patch(name, { [`${name}2`]: 1 });
    await session.enqueue(voice.user("later"), { id: `${name}~`, metadata: own("queued") });
    await turn.toolStarted(called[1]!.id);

    const check = (one: Pick<Session<Made>, "entries" | "attributes" | "queue">): void => {
      const entry = one.entries.find(({ id }) => id === name)!;
      expect(Object.entries(entry.metadata)).toEqual([
        [name, "member"],
        [`${name}2`, 1],
      ]);
      expect(Object.entries(one.attributes.labels)).toEqual([[name, "label"]]);
      expect(Object.entries(one.attributes.notes)).toEqual([[name, own("note")]]);
      expect(JSON.stringify(one.entries)).toContain("value");
      if (one.queue.length > 0) expect(Object.entries(one.queue[0]!.metadata)).toEqual([[name, "queued"]]);
    };
    check(session);
    await session.replace([...session.entries], { reason: "compaction" });
    check(session);
    expect((await store.list({ labels: own("label") })).sessions).toHaveLength(1);
    const fork = await store.fork<Made>(session.id);
    check(fork);
    await store.close();
    const again = await openStore(here.path, { durability: "process", recordsToolStarts: true });
    const resumed = await again.resume<Made>(session.id);
    check(resumed);
    expect(resumed.queue).toHaveLength(1);
    expect(resumed.interruption?.calls).toMatchObject([{ id: called[1]!.id, name, state: "outcome-unknown" }]);
    expect(await resumed.sync([...resumed.messages])).toEqual({ appended: [], epoch: false });
    await again.close();
  });
});

test("labels in a journal that are not what they should be: those that are usable count, in the session and in lists", () => {
  const dialect = voices[0]!.dialect as Made;
  const given: [labels: unknown, usable: unknown][] = [
    [
      { a: "x", b: 1, c: null, d: ["y"], e: {}, f: "" },
      { a: "x", f: "" },
    ],
    [{ b: 1 }, {}],
    [JSON.parse('{"__proto__":"p","constructor":7}'), JSON.parse('{"__proto__":"p"}')],
    ["text", {}],
    [["a"], {}],
    [null, {}],
    [7, {}],
  ];
  for (const [labels, usable] of given) {
    const record = { kind: "session", seq: 1, at: "2026-01-01T00:00:00.000Z", crc: "", dialect: dialect.name, labels };
    const conversation = new Conversation<Made>(() => dialect);
    conversation.add(record as Made);
    expect(Object.entries(conversation.attributes.labels)).toEqual(Object.entries(usable as object));
    const row = sessionSummariser(() => dialect).add(null, record as Made) as Made;
    expect(Object.entries(row.labels ?? {})).toEqual(Object.entries(usable as object));
    // And what a checkpoint is followed by.
    conversation.add({ kind: "epoch", seq: 2, at: record.at, crc: "", reason: "clear", checkpoint: {} } as Made);
    conversation.add({ ...record, seq: 3 } as Made);
    expect(Object.entries(conversation.attributes.labels)).toEqual(Object.entries(usable as object));
  }
});
