import {
  type AppendOptions,
  type CallFacts,
  type CallPolicy,
  type Dialect,
  type DialectName,
  type Draft,
  decideCall,
  dialects,
  type Entry,
  HoldfastError,
  type Metadata,
  type OpenCall,
  type Outcome,
  type ProbeAnswer,
  type ResumeOptions,
  type Session,
  type StateOptions,
  type StepStart,
  type Turn,
  type Usage,
} from "holdfast";
import { defined } from "holdfast/internal";
import type { RecordToMake } from "../schemas/recordings.ts";

/** What a recorder works on. Messages are JSON of the session's dialect. */
export interface Work {
  readonly session: Session<unknown>;
  /** The last turn, open or not: outcomes and usage may come after its end. */
  turn: Turn<unknown> | null;
  /** The answer to the last request, until it is recorded or discarded. */
  draft: Draft<unknown> | null;
}

type Of<T extends RecordToMake["type"]> = Extract<RecordToMake, { type: T }>;

/** What a record is answered with, besides its place. */
export interface RecordAnswer {
  readonly call?: { readonly key: string };
  readonly step?: StepStart;
}

/**
 * Makes a record: one call of the session or its turn. The key is the id of the first message. Durable when it
 * resolves; if it throws a HoldfastError that is not a store's, nothing has happened.
 */
export async function apply(
  work: Work,
  key: string,
  record: RecordToMake,
  onAnswer: (answer: RecordAnswer) => void = () => {},
): Promise<void> {
  const { session } = work;
  switch (record.type) {
    case "turn.start":
      work.turn = await session.startTurn(contentOf(session, record.queued, record.prompt), optionsOf(key, record));
      work.draft = null;
      return;
    case "turn.resume":
      work.turn = await session.resumeTurn(resumeOptions(session, record));
      work.draft = null;
      return;
    case "messages": {
      const turn = openTurn(work);
      const given = contentOf(session, record.queued, record.messages);
      await turn.append(given, { ...optionsOf(key, record), ...(record.end ? { end: true } : {}) });
      if (hasAnswer(session, given)) work.draft = null;
      return;
    }
    case "tool.started": {
      const { call, replay, probe, child, name, input } = record;
      const started = await openTurn(work).toolStarted(call, defined({ replay, probe, child, name, input }));
      return onAnswer({ call: { key: started.key } });
    }
    case "step.started": {
      const { call, step, replay, didNotHappen } = record;
      return onAnswer({ step: await openTurn(work).stepStarted(call, step, defined({ replay, didNotHappen })) });
    }
    case "step.ended":
      return lastTurn(work).stepEnded(record.call, record.step, outcomeOf(record), record.source);
    case "tool.process": {
      const { call, pid, started, group } = record;
      return lastTurn(work).toolProcess(call, { pid, started, ...(group ? { group } : {}) });
    }
    case "tool.ended":
      return lastTurn(work).toolEnded(record.call, outcomeOf(record), record.shown, stateOf(record));
    case "tool.settled":
      return settleCall(session, record);
    case "draft": {
      const draft = openDraft(work);
      for (const delta of record.deltas) draft.push(defined(delta));
      return session.flush();
    }
    case "draft.discard":
      await openDraft(work).discard(record.reason);
      work.draft = null;
      return;
    case "draft.restart":
      work.draft = openDraft(work).restart();
      return session.flush();
    case "usage":
      return lastTurn(work).usage(record.usage as Usage);
    case "turn.suspend":
      return openTurn(work).suspend({ reason: record.reason, ...defined({ calls: record.calls }) });
    case "turn.end":
      return session.turn ? session.turn.end() : session.completeTurn();
    case "turn.abort":
      return openTurn(work).abort({ by: record.by, ...defined({ reason: record.reason }) });
    case "turn.fail":
      return openTurn(work).fail(record.error);
    case "queue.put":
      await session.enqueue(record.prompt, optionsOf(key, record));
      return;
    case "queue.take":
      return session.dequeue(record.queued);
    case "replace":
      return session.replace(itemsFor(session, record.items), { reason: record.reason });
    case "undo":
      return session.undo();
    case "edit": {
      const { ids, shown, reason, now } = record;
      return session.edit(ids, shown, { reason, ...(now ? { now } : {}) });
    }
    case "patch":
      return session.patch(record.message, record.metadata as Metadata);
    case "note":
      return session.note(record.name, record.value as never);
    case "title":
      return session.rename(record.title);
  }
}

/** The ids of the messages that a record makes: known without the journal, so that a repetition has the same answer. */
export function idsOf(key: string, record: RecordToMake): string[] {
  if (record.type === "queue.put") return [key];
  if (record.type !== "turn.start" && record.type !== "messages") return [];
  if (record.queued !== undefined) return [record.queued];
  const given = record.type === "turn.start" ? record.prompt : record.messages;
  return Array.isArray(given) ? given.map((_, index) => (index === 0 ? key : `${key}.${index}`)) : [key];
}

/** The messages, or the queued prompt in their place. */
function contentOf(session: Session<unknown>, queued: string | undefined, messages: unknown): unknown {
  if ((queued === undefined) === (messages === undefined))
    throw new HoldfastError(
      "RECORD_INVALID",
      'Nothing was recorded: give either the messages or "queued". Nothing was changed.',
    );
  if (queued === undefined) return messages;
  const item = session.queue.find(({ id }) => id === queued);
  if (item) return item;
  const shown = queued.slice(0, 80);
  const message = `The queue has no prompt ${JSON.stringify(shown)}: it was delivered or withdrawn. Nothing was recorded.`;
  throw new HoldfastError("QUEUE_UNKNOWN", message, { id: shown });
}

/** The messages of a new conversation. Throws MESSAGE_UNKNOWN. */
function itemsFor({ id, entries }: Session<unknown>, items: Of<"replace">["items"]): (Entry<unknown> | unknown)[] {
  const known = new Map(entries.map((entry) => [entry.id, entry]));
  return items.map((item) => {
    if ("message" in item) return item.message;
    const entry = known.get(item.keep);
    if (entry) return entry;
    const shown = item.keep.slice(0, 80);
    const message = `The conversation has no message ${JSON.stringify(shown)}, so it was not replaced. Nothing was changed. Get the ids from GET /sessions/${id}/recording/messages.`;
    throw new HoldfastError("MESSAGE_UNKNOWN", message, { id: shown });
  });
}

function optionsOf(
  key: string,
  record: Of<"turn.start"> | Of<"messages"> | Of<"queue.put">,
): AppendOptions & StateOptions {
  const { metadata, model } = record;
  const id = "queued" in record && record.queued !== undefined ? undefined : key;
  const usage = "usage" in record ? record.usage : undefined;
  const state = "appState" in record ? stateOf(record) : {};
  // The library checks them.
  return { ...defined({ id, metadata, model, usage }), ...state } as AppendOptions & StateOptions;
}

function stateOf({ appState }: { readonly appState?: Record<string, unknown> | undefined }): StateOptions {
  return defined({ appState }) as StateOptions;
}

/** Throws TURN_OPEN, CALL_UNKNOWN, CALL_TAKEN, RECORD_INVALID. */
async function settleCall(session: Session<unknown>, record: Of<"tool.settled">): Promise<void> {
  const { call } = record;
  const { id, turn } = session;
  const shown = call.slice(0, 80);
  const answer = answerOf(record);
  if (turn) {
    const message = `Turn ${turn.number} of session ${id} is open: nothing was recorded. Calls are settled before "turn.resume"; in an open turn, record "tool.ended".`;
    throw new HoldfastError("TURN_OPEN", message, { session: id, turn: turn.number });
  }
  const inDoubt = (): OpenCall[] =>
    (session.interruption?.calls ?? []).filter((one) => one.id === call && one.state === "outcome-unknown");
  const [first, ...others] = inDoubt();
  if (!first) {
    const message = `The interrupted turn of session ${id} has no call ${JSON.stringify(shown)} whose outcome is unknown: nothing was recorded. GET /sessions/${id}/recording lists its calls.`;
    throw new HoldfastError("CALL_UNKNOWN", message, { call: shown });
  }
  let isAnswered = false;
  const probe = (asked: { readonly id: string }): ProbeAnswer => {
    // Servers reuse ids: each record means another call, in their order.
    if (isAnswered || asked.id !== call) return "unknown";
    isAnswered = true;
    return answer;
  };
  await session.settleCalls({ [first.name]: probe });
  if (inDoubt().length > others.length) {
    const message = `The call ${JSON.stringify(shown)} was started by this recorder, and its tool may still be running, so "didNotHappen" was not recorded. If its agent is gone, become the recorder again ("take": true).`;
    throw new HoldfastError("CALL_TAKEN", message, { call: shown });
  }
}

function answerOf({ didNotHappen, value, error }: Of<"tool.settled">): ProbeAnswer {
  if (!didNotHappen) return outcomeOf({ value, error });
  if (value === undefined && error === undefined) return "did-not-happen";
  throw new HoldfastError(
    "RECORD_INVALID",
    'Nothing was recorded: a call with "didNotHappen" has neither "value" nor "error". Nothing was changed.',
  );
}

/**
 * Outcomes that the agent knows come first, then what it wants to keep, then what is safe to run again. A call that it
 * could have settled, and has not, is closed: in an open turn nobody is asked.
 */
function resumeOptions(
  { interruption }: Session<unknown>,
  { calls, keep = [], outcomes = {}, draft }: Of<"turn.resume">,
): ResumeOptions {
  const kept = keep.map((id): [string, CallFacts] => [id, { waits: true }]);
  const known = Object.entries(outcomes).map(([id, one]): [string, CallFacts] => [id, { outcome: outcomeOf(one) }]);
  const policy: CallPolicy = { runs: calls === "rerun", facts: Object.fromEntries([...kept, ...known]) };
  const unsettled = (interruption?.calls ?? []).filter((call) => decideCall(call, policy) === "ask");
  const closed = unsettled.map(({ id }): [string, CallFacts] => [id, { mustNotRun: true }]);
  return { draft, calls: { ...policy, facts: Object.fromEntries([...kept, ...known, ...closed]) } };
}

function outcomeOf({ value, error }: { readonly value?: unknown; readonly error?: string | undefined }): Outcome {
  if ((value === undefined) === (error === undefined))
    throw new HoldfastError(
      "RECORD_INVALID",
      'Nothing was recorded: an outcome has either "value" or "error". Nothing was changed.',
    );
  return error === undefined ? { value } : { error };
}

function hasAnswer({ attributes }: Session<unknown>, given: unknown): boolean {
  const name = attributes.dialect;
  const dialect = Object.hasOwn(dialects, name) ? (dialects[name as DialectName] as Dialect<unknown>) : null;
  const messages: readonly unknown[] = Array.isArray(given) ? given : [given];
  return messages.some((message) => dialect?.role(message) === "assistant");
}

/** Throws TURN_ENDED. */
export function openTurn({ session }: Work): Turn<unknown> {
  if (session.turn) return session.turn;
  throw new HoldfastError(
    "TURN_ENDED",
    `Session ${session.id} has no open turn: nothing was recorded. Start a turn, or resume the interrupted one.`,
    { session: session.id },
  );
}

function lastTurn(work: Work): Turn<unknown> {
  return work.turn ?? openTurn(work);
}

function openDraft({ session, draft }: Work): Draft<unknown> {
  if (draft && session.turn) return draft;
  throw new HoldfastError(
    "DRAFT_DISCARDED",
    `Session ${session.id} has no open request, so the text was not recorded: its answer is recorded, or it was never made. Get the messages for the model first.`,
    { session: session.id },
  );
}
