import { HoldfastError } from "../../errors.ts";
import type { JournalRecord } from "../../journal/record.ts";
import type { Checkpoint, MessageRecord, SessionRecord } from "./records.ts";
import { type Clean, flag, list, number, object, only, record, shape, some, text, time } from "./shape.ts";

type Kind = SessionRecord["kind"];

const count: Clean = (value) =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
const cost = shape({ amount: number, currency: text });
const usage = shape(
  {},
  {
    inputTokens: number,
    outputTokens: number,
    cacheReadTokens: number,
    cacheWriteTokens: number,
    reasoningTokens: number,
    cost,
    otherCosts: list(cost),
  },
);
const place = shape({ message: text, index: count });
const parts = list(
  shape({ part: count }, { text, reasoning: text, call: shape({ id: text, name: text }), input: text }),
);
const outcome = { by: text, reason: text, error: text };
const suspension = { calls: list(text), until: time, parked: count, attempts: count };
const pid: Clean = (value) => (value === 0 ? undefined : count(value));
const process = { message: orNull(text), index: count, group: flag };
const started = {
  ...{ message: orNull(text), index: count, replay: only("safe"), child: text, intents: flag },
  ...{ idempotencyKey: text, probe: flag, before: some },
};
const message = { id: text, turn: count, step: text, message: some };
const messageToo = {
  metadata: object,
  model: text,
  redacted: flag,
  carried: flag,
  first: text,
  synthetic: text,
  incomplete: flag,
  late: flag,
  replacedBy: text,
  hidden: flag,
  call: place,
  source: text,
};
const step = { turn: count, call: text, step: text };
const stepToo = { message: orNull(text), index: count, carried: flag, first: text };
const promptKey = { promptKey: text, promptDigest: text };
const attributes = {
  title: text,
  cwd: text,
  dialect: text,
  app: text,
  labels: record(text),
  parent: shape({ session: text }, { call: text }),
  forkedFrom: shape({ session: text, at: text }),
};
const checkpoint: Clean = (value) => {
  const clean = savedCheckpoint(value);
  return clean && ({ ...NOTHING, ...clean } satisfies Checkpoint);
};
const savedCheckpoint = shape(
  {},
  {
    dialect: text,
    intents: flag,
    turns: count,
    turn: shape(
      { number: count, startedAt: text, lastAt: text, resumes: count, prompt: shape(message, messageToo) },
      {
        attempts: count,
        tried: flag,
        ended: shape({ outcome: text }, outcome),
        suspended: shape({ reason: text }, suspension),
        signal: shape({ signal: text }, { error: text }),
      },
    ),
    started: list(
      shape(
        { turn: count, call: text, name: text, startedAt: text },
        {
          ...started,
          startedSeq: count,
          process: shape({ pid, started: text }, { group: flag }),
          unstarted: text,
          gap: flag,
        },
      ),
    ),
    draft: shape({ id: text, turn: count, n: count, parts }, { gap: flag }),
    queue: list(shape({ id: text, prompt: some, queuedAt: text }, { metadata: object, model: text, ...promptKey })),
    notes: record(some),
    usage,
    usageByTurn: list((pair) =>
      Array.isArray(pair) && count(pair[0]) !== undefined && usage(pair[1]) === pair[1] ? pair : undefined,
    ),
    changed: shape({ from: text, until: text }),
    pending: flag,
  },
) as (value: unknown) => Partial<Checkpoint> | undefined;
const NOTHING: Checkpoint = {
  dialect: "",
  intents: false,
  turns: 0,
  started: [],
  queue: [],
  notes: {},
  usage: {},
  usageByTurn: [],
};

/** The shape of each kind: the members that a record cannot do without, and its optional members. */
const SHAPES: { readonly [K in Kind]: Clean } = {
  session: shape({}, attributes),
  "turn.started": shape({ turn: count, prompt: text }, promptKey),
  "turn.resumed": shape({ turn: count, n: count }),
  "turn.claimed": shape({ turn: count, n: count }, { worker: text }),
  "turn.suspended": shape({ turn: count, reason: text }, suspension),
  "turn.ended": shape({ turn: count, outcome: text }, outcome),
  signal: shape({ signal: text }, { error: text }),
  message: shape(message, messageToo),
  draft: shape({ id: text, turn: count, n: count }, { parts, discarded: text }),
  "draft.accepted": shape({ id: text, turn: count, asked: count, handle: some }, { calls: flag }),
  "tool.started": shape({ turn: count, call: text, name: text }, started),
  "tool.process": shape({ turn: count, call: text, pid, started: text }, process),
  "tool.ended": shape(
    { id: text, turn: count, call: text, name: text },
    { message: orNull(text), index: count, error: text, source: text, redacted: flag, unusedSteps: list(text) },
  ),
  "step.started": shape(step, { ...stepToo, idempotencyKey: text, replay: only("safe"), probe: flag }),
  "step.ended": shape(step, { ...stepToo, error: text, ms: number, source: text, redacted: flag, lost: flag }),
  "tool.unstarted": shape({ turn: count, call: text, source: text }, { message: orNull(text), index: count }),
  patch: shape({ id: text, metadata: object }),
  edit: shape(
    { id: text, ids: list(text), shown: list(shape({ id: text, message: some }, { redacted: flag })), reason: text },
    { now: flag },
  ),
  usage: shape({ turn: count, usage }),
  epoch: shape({ reason: text, checkpoint }, { undo: count }),
  "turn.prompt": shape({ turn: count, prompt: shape(message, messageToo) }),
  "turn.keys": shape({
    keys: list((one) =>
      Array.isArray(one) && typeof one[0] === "string" && typeof one[1] === "string" && count(one[2]) !== undefined
        ? one
        : undefined,
    ),
  }),
  "queue.put": shape(
    { id: text, prompt: some },
    { metadata: object, model: text, carried: flag, first: text, ...promptKey },
  ),
  "queue.take": shape({ id: text }, { withdrawn: flag }),
  repair: shape(
    {
      turn: count,
      entries: list(shape({ id: text, message: some, synthetic: text }, { incomplete: flag, call: place })),
    },
    { asked: count },
  ),
  note: shape({ name: text, value: some }),
  state: shape({ name: text, value: some }),
};

/**
 * The record as a session record, without members of the wrong type. Null if it belongs to the journal, is of an
 * unknown kind, or lacks what its kind requires.
 */
export function storedRecord(record: JournalRecord | SessionRecord): SessionRecord | null {
  if (isWholeMessage(record)) return record;
  return isKnownKind(record.kind) ? ((SHAPES[record.kind](record) as SessionRecord | undefined) ?? null) : null;
}

/**
 * A message with all that it needs, and none of the members that few messages have. Most records are such, and to read
 * members by their names in the source is far faster than by names in a table.
 */
export function isWholeMessage<R extends { readonly kind: string }>(record: R): record is R & MessageRecord {
  if (record.kind !== "message") return false;
  const { id, turn, step, message: said, model } = record as Partial<MessageRecord>;
  if (typeof id !== "string" || typeof step !== "string" || said === undefined || count(turn) === undefined)
    return false;
  if (model !== undefined && typeof model !== "string") return false;
  const { metadata, redacted, carried, first, synthetic, call } = record as Partial<MessageRecord>;
  const { incomplete, late, replacedBy, hidden, source } = record as Partial<MessageRecord>;
  return (
    metadata === undefined &&
    redacted === undefined &&
    carried === undefined &&
    first === undefined &&
    synthetic === undefined &&
    call === undefined &&
    incomplete === undefined &&
    late === undefined &&
    replacedBy === undefined &&
    source === undefined &&
    hidden === undefined
  );
}

export function isKnownKind(kind: string): kind is Kind {
  return Object.hasOwn(SHAPES, kind);
}

/** It has `must`, and is of an unknown kind. */
export function mustKnow(kind: string): HoldfastError {
  const message =
    `The session holds a record of the kind ${JSON.stringify(kind)}, which this version of Holdfast does not know and must not skip. ` +
    "Nothing was touched and nothing is lost. Open it with a newer version of Holdfast.";
  return new HoldfastError("FORMAT_NEWER", message, { kind });
}

function orNull(clean: Clean): Clean {
  return (value) => (value === null ? null : clean(value));
}
