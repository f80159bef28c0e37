import { HoldfastError } from "../errors.ts";
import { newId } from "../journal/id.ts";
import { assertPlain } from "../journal/plain.ts";
import type { Conversation } from "./conversation.ts";
import type { Intake, StoredMessage } from "./intake.ts";
import { frozenCopy } from "./plain-copy.ts";
import type { MessageRecord, SessionRecord } from "./records.ts";
import { messageIdTaken, queueUnknown } from "./refusals.ts";
import type { Appended, AppendOptions, Queued } from "./surface.ts";

const ID_CHARS_MAX = 512;

/** Messages on their way into one unit. */
export interface Items {
  readonly ids: readonly string[];
  /** Its records, without those of the turn. */
  readonly records: readonly SessionRecord[];
  /** All of them are recorded already, as they are (R15). */
  readonly known: Appended | null;
}

type Given<M> = M | readonly M[] | Queued<M>;

/** What the application gave, in the form that the journal keeps. */
export interface Taken {
  readonly stored: readonly StoredMessage[];
  /** The id of the prompt in the queue that it is. */
  readonly queued: string | null;
  /** One of the messages is the assistant's. */
  readonly isAnswer: boolean;
  /** Which of them is the prompt, if they begin a turn: what the system says may stand before it. */
  readonly prompt: number;
}

/** Throws MESSAGE_UNFIT. */
export function takenIn<M>(intake: Intake<M>, given: Given<M>): Taken {
  const queued = isQueued<M>(given) ? given : null;
  const messages = queued ? [queued.prompt] : ((Array.isArray(given) ? given : [given]) as readonly M[]);
  if (messages.length === 0) throw unfit("there is no message in it");
  const prompt = messages.length === 1 ? 0 : messages.findIndex((message) => intake.dialect.role(message) === "user");
  return {
    stored: messages.map((message) => intake.message(message)),
    queued: queued?.id ?? null,
    isAnswer: messages.some((message) => intake.dialect.role(message) === "assistant"),
    prompt: Math.max(0, prompt),
  };
}

/** The same for later: what the caller changes meanwhile changes nothing of it (R19). Throws RECORD_NOT_JSON. */
export function keptAsItIs(taken: Taken): Taken {
  const stored = taken.stored.map((one) => {
    assertPlain(one.stored, "message.message");
    return { ...one, stored: frozenCopy(one.stored) };
  });
  return { ...taken, stored };
}

/** The same of what is given along with them. */
export function keptOptions<O extends AppendOptions>(options: O): O {
  const kept = { ...options };
  for (const name of ["metadata", "usage"] as const) {
    if (options[name] === undefined) continue;
    assertPlain(options[name], `message.${name}`);
    Object.assign(kept, { [name]: frozenCopy(options[name]) });
  }
  return kept;
}

/**
 * The records of one or several messages, which count together (R3). Throws MESSAGE_UNFIT, MESSAGE_ID_TAKEN, QUEUE_UNKNOWN.
 */
export function itemsOf<M>(
  conversation: Conversation<M>,
  intake: Intake<M>,
  given: Given<M>,
  options: AppendOptions & { readonly turn: number },
): Items {
  return itemsFrom(conversation, intake, takenIn(intake, given), options);
}

export function itemsFrom<M>(
  conversation: Conversation<M>,
  intake: Intake<M>,
  taken: Taken,
  options: AppendOptions & { readonly turn: number },
): Items {
  const { turn, usage } = options;
  const queued = taken.queued === null ? null : conversation.queued(taken.queued);
  const stored = queued ? [intake.message(queued.prompt)] : taken.stored;
  const given = options.id ?? taken.queued;
  const first = given ?? newId();
  const ids = stored.length === 1 ? [first] : stored.map((_, index) => (index === 0 ? first : `${first}.${index}`));
  // Only an id that was given can be one that is known.
  if (given !== null) {
    assertId(given);
    const known = knownOf(conversation, intake, ids, stored);
    if (known) return { ids, records: [], known };
    if (taken.queued !== null && !queued) throw queueUnknown(taken.queued);
    if (!queued && conversation.queued(given)) throw messageIdTaken(given, "a prompt in the queue has this id");
  }

  const metadata = intake.metadata(options.metadata ?? queued?.metadata);
  const model = options.model ?? queued?.model;
  const records: SessionRecord[] = [];
  if (queued) records.push({ kind: "queue.take", id: queued.id });
  for (let index = 0; index < stored.length; index++) {
    const { stored: message, redacted } = stored[index]!;
    const record: MessageRecord = { kind: "message", id: ids[index]!, turn, step: first, message };
    if (metadata && Object.keys(metadata).length > 0) record.metadata = metadata;
    if (model !== undefined) record.model = model;
    if (redacted) record.redacted = true;
    records.push(record);
  }
  if (usage) records.push({ kind: "usage", turn, usage });
  return { ids, records, known: null };
}

function isQueued<M>(given: unknown): given is Queued<M> {
  if (typeof given !== "object" || given === null) return false;
  return "prompt" in given && "at" in given && "id" in given && typeof given.id === "string";
}

function knownOf<M>(
  conversation: Conversation<M>,
  intake: Intake<M>,
  ids: readonly string[],
  stored: readonly StoredMessage[],
): Appended | null {
  const found = ids.map((id) => conversation.find(id));
  if (found.every((item) => item === null)) return null;
  for (const [index, item] of found.entries()) {
    if (!item || !intake.same(item.entry.message, stored[index]!)) throw messageIdTaken(ids[index]!);
  }
  return { id: ids[0]!, ids: [...ids], seq: found[0]!.entry.seq };
}

export function assertId(id: unknown): void {
  if (typeof id === "string" && id !== "" && id.length <= ID_CHARS_MAX) return;
  throw unfit(`an id is a text of 1 to ${ID_CHARS_MAX} characters`);
}

export function unfit(why: string): HoldfastError {
  const message = `The message was not recorded: ${why}. Nothing before it is affected.`;
  return new HoldfastError("MESSAGE_UNFIT", message, { why });
}
