import type { Conversation } from "../conversation/conversation.ts";
import type { Queued } from "../conversation/prompt-queue.ts";
import type { AppStateRecord, MessageRecord, NoteRecord, SessionRecord } from "../conversation/records/records.ts";
import type { Usage } from "../conversation/records/usage.ts";
import { defined } from "../defined.ts";
import type { Metadata } from "../dialects/dialect.ts";
import { newId } from "../journal/id.ts";
import { snapshot } from "../journal/lines/plain.ts";
import type { Json } from "../journal/record.ts";
import { type Admission, found, readable, type StoredMessage, unfit } from "./admit.ts";
import { type AppStateChanges, admitAppState } from "./app-state.ts";
import { invalid, messageIdTaken, queueUnknown } from "./refusals.ts";
import { assertSize, MESSAGE_BYTES_MAX } from "./size.ts";

export interface AppendOptions {
  /** A known id is not written twice; MESSAGE_ID_TAKEN if the content differs (R15). */
  readonly id?: string;
  readonly metadata?: Metadata;
  /** The model that made it, or that will be asked next. */
  readonly model?: string;
  readonly usage?: Usage;
}

/** What is written in one unit with messages. */
export interface StateOptions {
  /**
   * Values of the application's own, by name: the message and they are recorded together, or not at all. The last
   * value counts, in `appState`; null takes it away. A rewind, an undo and a fork give each part of the conversation
   * the state that it had. Put the version into the name (`cart.v2`): your program migrates older ones.
   */
  readonly appState?: AppStateChanges;
}

/** Options as they were at the call. */
export interface AdmittedOptions extends AppendOptions {
  readonly state?: readonly AppStateRecord[];
}

/** Options of `session.enqueue`. */
export interface PromptOptions extends AppendOptions {
  /**
   * Stands for this prompt, at most 256 characters: given again, it means the same turn, for as long as the session
   * lives. The journal holds a digest of it, and one of the prompt.
   */
  readonly key?: string;
}

export interface Appended {
  /** The id of the first message. */
  id: string;
  ids: string[];
  seq: number;
}

const ID_CHARS_MAX = 512;
const MODEL_CHARS_MAX = 1024;

/** Messages prepared for one unit. */
export interface Items {
  readonly ids: readonly string[];
  /** The unit's records, without those of the turn. */
  readonly records: readonly SessionRecord[];
  /** Set if all of them are already recorded, unchanged (R15). */
  readonly known: Appended | null;
}

type AppendInput<M> = M | readonly M[] | Queued<M>;

/** The application's messages, in the form that the journal stores. */
export interface AdmittedMessages {
  readonly stored: readonly StoredMessage[];
  /** The id of the queued prompt, if it is one. */
  readonly queued: string | null;
  /** One of the messages is the assistant's. */
  readonly isAnswer: boolean;
  /** The index of the prompt, if they start a turn: system messages may come before it. */
  readonly prompt: number;
}

/** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON. Later changes by the caller have no effect (R19). */
export function admitMessages<M>(admission: Admission<M>, given: AppendInput<M>): AdmittedMessages {
  const { messages, queued, isAlone } = readable("message", undefined, () => toList<M>(given));
  if (isAlone) return toAdmitted([admission.message(messages[0]!)], queued);
  if (messages.length === 0) throw unfit("the list of messages is empty");
  return toAdmitted(messages.map((message, index) => admission.message(message, index)));
}

export function toAdmitted(stored: readonly StoredMessage[], queued: string | null = null): AdmittedMessages {
  const prompt = stored.length === 1 ? 0 : stored.findIndex(({ role }) => role === "user");
  const isAnswer = stored.some(({ role }) => role === "assistant");
  return { stored, queued, isAnswer, prompt: Math.max(0, prompt) };
}

function toList<M>(given: AppendInput<M>): { messages: readonly M[]; queued: string | null; isAlone: boolean } {
  if (Array.isArray(given)) return { messages: [...given], queued: null, isAlone: false };
  if (isQueued<M>(given)) return { messages: [given.prompt], queued: given.id, isAlone: true };
  return { messages: [given as M], queued: null, isAlone: true };
}

/** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, and what `admitAppState` throws. */
export function admitOptions<M>(
  admission: Admission<M>,
  given: (AppendOptions & StateOptions) | undefined | null,
): AdmittedOptions {
  if (given === undefined || given === null) return NO_OPTIONS;
  const { id, metadata, model, usage, appState } = readable("options", undefined, () => {
    const { id, metadata, model, usage, appState } = given;
    return { id, metadata, model, usage, appState };
  });
  if (id !== undefined) assertId(id);
  if (model !== undefined && (typeof model !== "string" || model.length > MODEL_CHARS_MAX)) {
    throw unfit(`model must be a string of at most ${MODEL_CHARS_MAX} characters, not ${found(model)}`);
  }
  return {
    ...defined({ id, model }),
    ...(metadata === undefined || metadata === null ? {} : { metadata: admission.metadata(metadata) }),
    ...(usage === undefined || usage === null ? {} : { usage: admitUsage(usage) }),
    ...(appState === undefined ? {} : { state: admitAppState(admission, appState) }),
  };
}

const NO_OPTIONS: AppendOptions = {};

/** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON. */
export function admitUsage(usage: Usage): Usage {
  const copy: unknown = readable("usage", undefined, () => snapshot(usage, "usage"));
  if (typeof copy === "object" && copy !== null && !Array.isArray(copy)) return copy;
  throw unfit(`usage must be an object, not ${found(usage)}`);
}

/** Throws RECORD_INVALID, RECORD_NOT_JSON, RECORD_TOO_LARGE. */
export function admitNote<M>(admission: Admission<M>, name: string, value: Json): NoteRecord {
  if (typeof name !== "string" || value === undefined) throw invalid("a note needs a name and a value");
  const given = admission.json(value, "value");
  assertSize("the note", "note", { name, value: given }, MESSAGE_BYTES_MAX);
  return { kind: "note", name, value: given };
}

/**
 * The records of one or more messages that form one step (R3). `options` are already admitted. `draft`: the id of the
 * draft that they finish. Throws MESSAGE_UNFIT, MESSAGE_ID_TAKEN, QUEUE_UNKNOWN.
 */
export function toRecords<M>(
  conversation: Conversation<M>,
  admission: Admission<M>,
  admitted: AdmittedMessages,
  turn: number,
  options: AdmittedOptions,
  draft?: string,
): Items {
  const { usage, state } = options;
  const queued = admitted.queued === null ? null : conversation.queued(admitted.queued);
  const stored = queued ? [admission.message(queued.prompt)] : admitted.stored;
  const given = options.id ?? draft ?? admitted.queued;
  const ids = idsOf(given ?? newId(), stored);
  // Only an id given by the application can already be known.
  if (given !== null) {
    assertId(given);
    const known = knownOf(conversation, admission, ids, stored);
    if (known) return { ids, records: [], known };
    if (admitted.queued !== null && !queued) throw queueUnknown(admitted.queued);
    if (!queued && conversation.queued(given)) throw messageIdTaken(given, "a queued prompt has this id");
  }

  const records: SessionRecord[] = messageRecords(stored, ids, turn, {
    metadata: options.metadata ?? queued?.metadata,
    model: options.model ?? queued?.model,
  });
  if (queued) records.unshift({ kind: "queue.take", id: queued.id });
  if (usage) records.push({ kind: "usage", turn, usage });
  if (state) records.push(...state);
  return { ids, records, known: null };
}

/** The ids of messages that form one step (R3). */
export function idsOf(first: string, stored: readonly StoredMessage[]): string[] {
  return stored.length === 1 ? [first] : stored.map((_, index) => (index === 0 ? first : `${first}.${index}`));
}

export function messageRecords(
  stored: readonly StoredMessage[],
  ids: readonly string[],
  turn: number,
  { metadata, model }: { readonly metadata?: Metadata | undefined; readonly model?: string | undefined } = {},
): MessageRecord[] {
  const records: MessageRecord[] = [];
  for (let index = 0; index < stored.length; index++) {
    const { stored: message, redacted } = stored[index]!;
    const record: MessageRecord = { kind: "message", id: ids[index]!, turn, step: ids[0]!, message };
    if (metadata && Object.keys(metadata).length > 0) record.metadata = metadata;
    if (model !== undefined) record.model = model;
    if (redacted) record.redacted = true;
    records.push(record);
  }
  return records;
}

function isQueued<M>(given: unknown): given is Queued<M> {
  if (typeof given !== "object" || given === null) return false;
  return "prompt" in given && "at" in given && "id" in given && typeof given.id === "string";
}

function knownOf<M>(
  conversation: Conversation<M>,
  admission: Admission<M>,
  ids: readonly string[],
  stored: readonly StoredMessage[],
): Appended | null {
  const found = ids.map((id) => conversation.find(id));
  if (found.every((item) => item === null)) return null;
  for (const [index, item] of found.entries()) {
    if (!item || !admission.same(item.entry.message, stored[index]!)) throw messageIdTaken(ids[index]!);
  }
  return { id: ids[0]!, ids: [...ids], seq: found[0]!.entry.seq };
}

export function assertId(id: unknown): void {
  if (typeof id === "string" && id !== "" && id.length <= ID_CHARS_MAX) return;
  throw unfit(`an id must be a string of 1 to ${ID_CHARS_MAX} characters`);
}
