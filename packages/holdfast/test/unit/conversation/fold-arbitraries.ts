import fc from "fast-check";
import type { MadeCall, Voice } from "../dialects/dialect-voices.ts";
import type { Written } from "./fold-book.ts";

const id = fc.constantFrom("a1", "a2", "a3", "a4", "a5", "a1~0", "a2~0");
const callId = fc.constantFrom("call_0", "call_0", "call_1", "call_2");
const turn = fc.nat(3);
const name = fc.constantFrom("read", "write");
const step = fc.constantFrom("first", "second");
const words = fc.constantFrom("hello", "", " ", "more");
const yes = fc.constantFrom(true, undefined, undefined);
const junk = fc.constantFrom<unknown>(null, 5, -1.5, "x", true, [], {}, [null], { id: 1 }, Number.NaN);
const place = fc.record({ message: id, index: fc.nat(2) });
const metadata = fc.constantFrom({}, { hiddenFromModel: true }, { hiddenFromModel: null }, { a: { b: 1 } });
const call: fc.Arbitrary<MadeCall> = fc.record({
  id: fc.oneof({ weight: 6, arbitrary: callId }, { weight: 1, arbitrary: fc.constant(null) }),
  name,
  input: fc.constantFrom("whole", "cut", "null"),
});

/** A message of any kind in this dialect, and now and then something that is none. */
export function messages(voice: Voice): fc.Arbitrary<unknown> {
  const step = fc.record({
    reasoning: fc.constantFrom("none", "signed"),
    text: fc.oneof(fc.constant(null), words),
    calls: fc.array(call, { maxLength: 3 }),
    after: fc.constant(null),
    provider: fc.constantFrom("none", "none", "finished", "unfinished"),
  } as const);
  return fc.oneof(
    { weight: 3, arbitrary: words.map((text) => voice.user(text)) },
    // A step may be several messages, and any of them may be lost.
    {
      weight: 6,
      arbitrary: fc.tuple(step, fc.nat(9)).map(([of, at]) => voice.step(of as never, at).at(at % 2 ? -1 : 0)),
    },
    { weight: 6, arbitrary: fc.tuple(call, fc.boolean()).map(([of, failed]) => voice.result(of, "result", failed)) },
    { weight: 1, arbitrary: junk },
  );
}

const source = fc.constantFrom("probe", "application");
/** What a start says for the time after a crash. */
const proof = {
  idempotencyKey: fc.constantFrom("k1", "k2", undefined),
  probe: fc.constantFrom(true, undefined),
  before: fc.option(fc.string({ maxLength: 3 }), { nil: undefined }),
};

function storedMessages(voice: Voice): fc.Arbitrary<unknown> {
  const { encode } = voice.dialect;
  // An item that a step of this dialect does not have.
  return messages(voice).map((message) => (message === undefined ? null : encode ? encode(message) : message));
}

/** Records in any order, of which some are not what they should be. */
export function anyRecords(voice: Voice): fc.Arbitrary<Written[]> {
  const message = storedMessages(voice);
  const pid = fc.nat(3);
  const usage = fc.record({
    inputTokens: fc.nat(9),
    cost: fc.record({ amount: fc.nat(9), currency: fc.constant("EUR") }),
  });
  const repairs = fc.array(fc.record({ id, message, synthetic: words, call: fc.option(place, { nil: undefined }) }), {
    maxLength: 2,
  });
  const parts = fc.array(fc.record({ part: fc.nat(2), text: words, input: words }), { maxLength: 2 });
  const keyed = {
    promptKey: fc.constantFrom(undefined, "k1", "k2"),
    promptDigest: fc.constantFrom(undefined, "d1", "d2"),
  };
  const members: Record<string, Record<string, fc.Arbitrary<unknown>>> = {
    opened: { intents: fc.boolean() },
    session: { title: words, labels: fc.constant({ a: "b" }), dialect: fc.constant(voice.dialect.name) },
    "turn.started": { turn, prompt: id, ...keyed },
    "turn.resumed": { turn, n: fc.nat(3) },
    "turn.claimed": { turn, n: fc.nat(3), worker: fc.option(words, { nil: undefined }) },
    "turn.suspended": {
      ...{ turn, reason: fc.oneof(words, fc.constant("hand-over")), calls: fc.array(callId, { maxLength: 2 }) },
      until: fc.constantFrom(undefined, "2026-11-19T14:05:00.000Z", "2026-11-19T14:05:00Z", "soon"),
      parked: fc.constantFrom(undefined, undefined, 5, -1),
      attempts: fc.constantFrom(undefined, 2),
    },
    "turn.ended": {
      ...{ turn, outcome: fc.constantFrom("completed", "aborted", "failed", "left", "other") },
      by: fc.oneof(words, fc.constant("close")),
    },
    signal: { signal: fc.constant("SIGTERM"), error: fc.option(words, { nil: undefined }) },
    message: {
      id,
      turn,
      step: id,
      message,
      metadata,
      model: fc.constantFrom(undefined, "a", "b"),
      redacted: yes,
      carried: yes,
      hidden: yes,
      late: yes,
      call: fc.option(place, { nil: undefined }),
    },
    draft: { id, turn, n: fc.nat(2), parts, discarded: fc.constantFrom(undefined, undefined, "retry") },
    "draft.accepted": { id, turn, asked: fc.nat(12), handle: junk, calls: yes },
    "tool.started": { turn, call: callId, message: fc.option(id), index: fc.nat(2), name, intents: yes, ...proof },
    "tool.unstarted": { turn, call: callId, message: fc.option(id), index: fc.nat(2), source },
    "tool.process": { turn, call: callId, message: fc.option(id), index: fc.nat(2), pid, started: words, group: yes },
    "step.started": { turn, call: callId, message: fc.option(id), index: fc.nat(2), step, replay: yes, carried: yes },
    "step.ended": {
      ...{ turn, call: callId, message: fc.option(id), index: fc.nat(2), step, value: words, carried: yes },
      ...{ error: fc.option(words, { nil: undefined }), lost: yes },
    },
    "tool.ended": {
      id: fc.constantFrom("t1", "t2", "t3", "a1"),
      turn,
      call: callId,
      message: fc.option(id),
      index: fc.nat(2),
      name,
      value: words,
      error: fc.option(words, { nil: undefined }),
      shown: fc.option(message, { nil: undefined }),
      source: fc.option(source, { nil: undefined }),
    },
    patch: { id, metadata },
    edit: {
      id: fc.constantFrom("e1", "e2"),
      ids: fc.array(id, { maxLength: 3 }),
      shown: fc.array(fc.record({ id: fc.constantFrom("s1", "s2"), message }), { maxLength: 2 }),
      reason: words,
      now: yes,
    },
    usage: { turn, usage },
    "queue.put": { id, prompt: message, metadata, carried: yes, first: fc.constant("2026"), ...keyed },
    "turn.prompt": { turn, prompt: fc.record({ id, turn, step: id, message, first: fc.constant("2026") }) },
    "queue.take": { id, withdrawn: yes },
    "turn.keys": { keys: fc.array(fc.tuple(fc.constantFrom("k1", "k2"), words, turn), { maxLength: 2 }), carried: yes },
    repair: { turn, entries: repairs, asked: fc.option(fc.nat(12), { nil: undefined }) },
    note: { name, value: junk, carried: yes },
    state: { name, value: fc.option(junk), carried: yes },
    epoch: {
      reason: fc.constant("compaction"),
      carried: fc.nat(2),
      undo: fc.nat(3),
      checkpoint: fc.record(
        {
          dialect: fc.constant(voice.dialect.name),
          intents: fc.boolean(),
          turns: turn,
          turn: fc.record({
            number: turn,
            startedAt: fc.constant("2026"),
            lastAt: fc.constant("2026"),
            resumes: fc.nat(2),
            intents: fc.boolean(),
            prompt: fc.record({ id, turn, step: id, message, first: fc.constant("2026") }),
          }),
          started: fc.array(
            fc.record({
              turn,
              call: callId,
              message: fc.option(id),
              index: fc.nat(2),
              name,
              startedAt: fc.constant("2026"),
              process: fc.option(fc.record({ pid, started: words }), { nil: undefined }),
              unstarted: fc.option(source, { nil: undefined }),
              ...proof,
            }),
            { maxLength: 2 },
          ),
          draft: fc.record({ id, turn, n: fc.nat(2), parts }),
          queue: fc.array(fc.record({ id, prompt: message, queuedAt: fc.constant("2026"), ...keyed }), {
            maxLength: 2,
          }),
          notes: fc.constant({ a: 1 }),
          usage,
          usageByTurn: fc.array(fc.tuple(turn, usage), { maxLength: 2 }),
          changed: fc.record({ from: id, until: id }),
          pending: yes,
        },
        { requiredKeys: [] },
      ),
    },
  };
  const often: Record<string, number> = {
    message: 24,
    "tool.ended": 6,
    "tool.started": 5,
    "tool.process": 3,
    "step.started": 3,
    "step.ended": 3,
    "tool.unstarted": 3,
    "turn.started": 4,
    repair: 3,
  };
  const kinds = Object.entries(members).map(([kind, of]) => {
    const whole = fc.record({ kind: fc.constant(kind), ...of });
    const spoilt = fc
      .tuple(whole, fc.constantFrom(...Object.keys(of)), junk, fc.boolean())
      .map(([record, at, bad, isGone]) => {
        const { [at]: _, ...rest } = record as Written;
        return isGone ? rest : { ...rest, [at]: bad };
      });
    const arbitrary = fc.oneof({ weight: 6, arbitrary: whole }, { weight: 1, arbitrary: spoilt });
    return { weight: often[kind] ?? 1, arbitrary: arbitrary as fc.Arbitrary<Written> };
  });
  const unknown = { weight: 1, arbitrary: fc.constant<Written>({ kind: "of-tomorrow", id: "a1" }) };
  return fc.array(fc.oneof(...kinds, unknown), { maxLength: 30 });
}
