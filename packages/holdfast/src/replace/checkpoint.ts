import { weightOf } from "../admit/size.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Item } from "../conversation/item.ts";
import type { Attributes } from "../conversation/records/attributes.ts";
import type {
  Checkpoint,
  QueuedItem,
  SessionAttributes,
  SessionRecord,
  StartedCheckpoint,
  TurnCheckpoint,
} from "../conversation/records/records.ts";
import type { CallPlace } from "../conversation/tool-starts.ts";
import { recordsStarts, type TurnState } from "../conversation/turn-state.ts";
import { defined } from "../defined.ts";
import type { Dialect, Entry } from "../dialects/dialect.ts";
import { encodeMessage } from "./retained.ts";

/**
 * Everything besides the messages that a new epoch keeps, so that nothing before it is needed (S16). `kept`: the
 * entries of the epoch. Starts of calls outside them are dropped, unless the call has moved to another entry (`moved`,
 * keyed by position).
 */
export function checkpointOf<M>(
  conversation: Conversation<M>,
  kept: readonly Item<M>[] = conversation.items,
  moved: ReadonlyMap<string, CallPlace> = new Map(),
): Checkpoint {
  const { dialect, attributes, writer, turns, turn, toolStarts, draft, usage } = conversation;
  const ids = new Set<string | null>(kept.map(({ entry }) => entry.id)).add(null);
  const keptTurns = new Set(kept.map(({ entry }) => entry.turn)).add(turns);
  const changed = conversation.changed.saved();
  return {
    dialect: attributes.dialect,
    intents: writer.intents,
    turns,
    ...(turn ? { turn: turnCheckpoint(dialect, turn) } : {}),
    started: toolStarts
      .saved()
      .map((one) => ({ ...one, ...moved.get(`${one.index ?? 0} ${one.message}`) }))
      .filter(({ message }) => ids.has(message)),
    ...(draft ? { draft: draft.checkpoint() } : {}),
    queue: conversation.queue.map(({ id }) => queuedItem(conversation, id)),
    notes: attributes.notes,
    usage,
    usageByTurn: [...conversation.usageByTurn].filter(([number]) => keptTurns.has(number)),
    ...(changed ? { changed } : {}),
  };
}

function turnCheckpoint<M>(dialect: Dialect<M>, turn: TurnState<M>): TurnCheckpoint {
  const { number, startedAt, lastAt, resumes, attempts, isTried, prompt, ended, suspended, signal } = turn;
  return {
    ...{ number, startedAt, lastAt, resumes, intents: recordsStarts(turn), prompt: storedPrompt(dialect, prompt) },
    ...(attempts > 0 ? { attempts } : {}),
    ...(isTried ? { tried: true } : {}),
    ...(ended ? { ended } : {}),
    ...(suspended ? { suspended } : {}),
    ...(signal ? { signal } : {}),
  };
}

function storedPrompt<M>(dialect: Dialect<M>, entry: Entry<M>): TurnCheckpoint["prompt"] {
  const { id, turn, step, at: first, message, metadata, model, synthetic } = entry;
  return {
    ...{ id, turn, step, message: encodeMessage(dialect, message), first },
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...defined({ model, synthetic }),
  };
}

function queuedItem<M>(conversation: Conversation<M>, of: string): QueuedItem {
  const { id, prompt, at: queuedAt, metadata, model, promptKey, promptDigest } = conversation.queued(of)!;
  return {
    ...{ id, prompt: encodeMessage(conversation.dialect, prompt), queuedAt },
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...defined({ model, promptKey, promptDigest }),
  };
}

/** Above this, the input of a call that was never recorded is left out, in characters. */
const INPUT_CHARS_MAX = 1024 * 1024;
const USAGE_TURNS_MAX = 100_000;

/**
 * The checkpoint without what can be large, and the records after it that hold that, so that a session with a large
 * queue, notes or prompt can be compacted and forked like any other. `isCarried`: the prompt is among the epoch's
 * messages, as the prompt of its turn.
 */
export function spreadOut(
  { turn, started, queue, notes, ...rest }: Checkpoint,
  isCarried: (prompt: TurnCheckpoint["prompt"], turn: number) => boolean,
): { readonly checkpoint: Checkpoint; readonly behind: SessionRecord[] } {
  const behind: SessionRecord[] = [];
  const checkpoint: Checkpoint = {
    ...rest,
    started: started.map(withSmallInput),
    queue: [],
    notes: {},
    usageByTurn: rest.usageByTurn.slice(-USAGE_TURNS_MAX),
  };
  if (turn) {
    const { number, prompt } = turn;
    checkpoint.turn = { ...turn, prompt: { ...prompt, message: null } };
    if (!isCarried(prompt, number)) behind.push({ kind: "turn.prompt", must: true, turn: number, prompt });
  }
  for (const { steps = [], message, index } of started)
    for (const step of steps) behind.push({ ...step, message, ...defined({ index }) });
  for (const { queuedAt: first, ...item } of queue) behind.push({ kind: "queue.put", ...item, carried: true, first });
  for (const [name, value] of Object.entries(notes)) behind.push({ kind: "note", name, value, carried: true });
  return { checkpoint, behind };
}

function withSmallInput({ steps: _steps, ...started }: StartedCheckpoint): StartedCheckpoint {
  if (started.input === undefined || weightOf(started.input) <= INPUT_CHARS_MAX) return started;
  return { ...started, input: "(It was too large to be kept here: the journal has it.)" };
}

/** All attributes, for the `session` record that follows the epoch. */
export function attributesRecord({ notes: _notes, title, labels, ...rest }: Attributes): SessionAttributes {
  return {
    kind: "session",
    ...rest,
    ...(title === "" ? {} : { title }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
  };
}
