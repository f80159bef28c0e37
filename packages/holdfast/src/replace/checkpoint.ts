import { weightOf } from "../admit/size.ts";
import type { Attributes } from "../conversation/attributes.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Item } from "../conversation/item.ts";
import type {
  Checkpoint,
  QueuedItem,
  SessionAttributes,
  SessionRecord,
  StartedCheckpoint,
  TurnCheckpoint,
} from "../conversation/records.ts";
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
  const { number, startedAt, lastAt, resumes, prompt, ended, suspended, signal } = turn;
  return {
    ...{ number, startedAt, lastAt, resumes, intents: recordsStarts(turn), prompt: storedPrompt(dialect, prompt) },
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
  const { id, prompt, at: queuedAt, metadata, model } = conversation.queued(of)!;
  return {
    ...{ id, prompt: encodeMessage(conversation.dialect, prompt), queuedAt },
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...defined({ model }),
  };
}

/** How much of a checkpoint one record holds, in characters, approximately; the rest follows in further records. */
const INLINE_CHARS_MAX = 1024 * 1024;
/** Far more than any model streams. */
const DRAFT_CHARS_MAX = 8 * 1024 * 1024;
const USAGE_TURNS_MAX = 100_000;

/**
 * The checkpoint as one record can hold it, and the records after it that hold the rest, so that a session with a large
 * queue, notes or prompt can be compacted and forked like any other. `isCarried`: the prompt is among the epoch's
 * messages, as the prompt of its turn.
 */
export function spreadOut(
  whole: Checkpoint,
  isCarried: (prompt: TurnCheckpoint["prompt"], turn: number) => boolean,
): { readonly checkpoint: Checkpoint; readonly behind: SessionRecord[] } {
  const behind: SessionRecord[] = [];
  let room = INLINE_CHARS_MAX;
  const fits = (value: unknown): boolean => {
    const chars = weightOf(value);
    if (chars > room) return false;
    room -= chars;
    return true;
  };
  const { turn, draft, usageByTurn, ...rest } = whole;
  const checkpoint: Checkpoint = {
    ...rest,
    ...(turn ? { turn } : {}),
    ...(draft ? { draft: cutDraft(draft) } : {}),
    started: whole.started.map(withSmallInput),
    usageByTurn: usageByTurn.slice(-USAGE_TURNS_MAX),
  };
  if (turn && !fits(turn.prompt)) {
    checkpoint.turn = { ...turn, prompt: { ...turn.prompt, message: null } };
    const { number, prompt } = turn;
    if (!isCarried(prompt, number)) behind.push({ kind: "turn.prompt", must: true, turn: number, prompt });
  }
  // They keep their order: once one does not fit, no later one is inlined.
  const inline = whole.queue.findIndex((item) => !fits(item));
  checkpoint.queue = inline < 0 ? whole.queue : whole.queue.slice(0, inline);
  for (const { queuedAt: first, ...item } of whole.queue.slice(checkpoint.queue.length)) {
    behind.push({ kind: "queue.put", ...item, carried: true, first });
  }
  const notes = Object.entries(whole.notes);
  const small = notes.filter(([, value]) => fits(value));
  checkpoint.notes = Object.fromEntries(small);
  const isSmall = new Set(small.map(([name]) => name));
  for (const [name, value] of notes) if (!isSmall.has(name)) behind.push({ kind: "note", name, value, carried: true });
  return { checkpoint, behind };
}

/** If the call is recorded, its message has the input. */
function withSmallInput(started: StartedCheckpoint): StartedCheckpoint {
  const { input, ...rest } = started;
  if (input === undefined || (started.message === null && weightOf(input) <= INLINE_CHARS_MAX)) return started;
  return started.message === null
    ? { ...rest, input: "(It was too large to be kept here: the journal has it.)" }
    : rest;
}

function cutDraft(draft: NonNullable<Checkpoint["draft"]>): NonNullable<Checkpoint["draft"]> {
  let room = DRAFT_CHARS_MAX;
  const end = draft.parts.findIndex((part) => {
    room -= weightOf(part);
    return room < 0;
  });
  return end < 0 ? draft : { ...draft, parts: draft.parts.slice(0, end), gap: true };
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
