import { HoldfastError } from "../errors.ts";
import { newId } from "../journal/id.ts";
import type { Conversation } from "./conversation.ts";
import type { Intake } from "./intake.ts";
import type { MessageRecord, SessionRecord } from "./records.ts";
import { messageIdTaken, queueUnknown } from "./refusals.ts";
import type { Appended, AppendOptions, Queued } from "./surface.ts";

const ID_CHARS_MAX = 512;

/** Messages on their way into one unit. */
export interface Items<M> {
  readonly ids: readonly string[];
  readonly messages: readonly M[];
  /** Its records, without those of the turn. */
  readonly records: readonly SessionRecord[];
  /** All of them are recorded already, as they are (R15). */
  readonly known: Appended | null;
}

type Given<M> = M | readonly M[] | Queued<M>;

/**
 * The records of one or several messages, which count together (R3). Throws MESSAGE_UNFIT, MESSAGE_ID_TAKEN, QUEUE_UNKNOWN.
 */
export function itemsOf<M>(
  conversation: Conversation<M>,
  intake: Intake<M>,
  given: Given<M>,
  options: AppendOptions & { readonly turn: number },
): Items<M> {
  const { turn, usage } = options;
  const queued = isQueued<M>(given) ? takenFrom(conversation, given) : null;
  const messages = queued ? [queued.prompt] : ((Array.isArray(given) ? given : [given]) as readonly M[]);
  if (messages.length === 0) throw unfit("there is no message in it");
  const first = options.id ?? queued?.id ?? newId();
  assertId(first);
  const ids = messages.map((_, index) => (index === 0 ? first : `${first}.${index}`));
  const stored = messages.map((message) => intake.message(message));
  const known = knownOf(
    conversation,
    ids,
    stored.map((one) => one.stored as M),
  );
  if (known) return { ids, messages, records: [], known };

  const metadata = options.metadata ?? queued?.metadata;
  const model = options.model ?? queued?.model;
  const records: SessionRecord[] = [];
  if (queued) records.push({ kind: "queue.take", id: queued.id });
  for (const [index, { stored: message, redacted }] of stored.entries()) {
    const record: MessageRecord = { kind: "message", id: ids[index]!, turn, step: first, message };
    if (metadata && Object.keys(metadata).length > 0) record.metadata = metadata;
    if (model !== undefined) record.model = model;
    if (redacted) record.redacted = true;
    records.push(record);
  }
  if (usage) records.push({ kind: "usage", turn, usage });
  return { ids, messages, records, known: null };
}

export function isQueued<M>(given: unknown): given is Queued<M> {
  if (typeof given !== "object" || given === null) return false;
  return "prompt" in given && "at" in given && "id" in given && typeof given.id === "string";
}

function takenFrom<M>(
  conversation: Conversation<M>,
  { id }: Queued<M>,
): NonNullable<ReturnType<Conversation<M>["queued"]>> {
  const queued = conversation.queued(id);
  if (!queued) throw queueUnknown(id);
  return queued;
}

function knownOf<M>(conversation: Conversation<M>, ids: readonly string[], stored: readonly M[]): Appended | null {
  const found = ids.map((id) => conversation.find(id));
  if (found.every((item) => item === null)) return null;
  const { dialect } = conversation;
  for (const [index, item] of found.entries()) {
    const message = dialect.decode ? dialect.decode(stored[index] as never) : stored[index]!;
    if (!item || !dialect.same(item.entry.message, message)) throw messageIdTaken(ids[index]!);
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
