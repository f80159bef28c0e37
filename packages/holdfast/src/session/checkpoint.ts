import type { Dialect, Entry } from "../dialects/dialect.ts";
import { encoded } from "./carried.ts";
import type { Conversation } from "./conversation.ts";
import type { Item } from "./item.ts";
import type { Checkpoint, QueuedItem, SessionAttributes, TurnCheckpoint } from "./records.ts";
import type { Attributes } from "./surface.ts";
import { recordsStarts, type TurnState } from "./turn-state.ts";
import type { Place } from "./whole-steps.ts";

/**
 * All that lives on besides the messages, so that nothing before the epoch is needed to go on (S16). `kept`: the entries that the epoch has. Starts of calls that
 * are not among them belong to nothing any more, unless the call has moved to another one (`moved`, by its place).
 */
export function checkpointOf<M>(
  conversation: Conversation<M>,
  kept: readonly Item<M>[] = conversation.items,
  moved: ReadonlyMap<string, Place> = new Map(),
): Checkpoint {
  const { dialect, attributes, writer, turns, turn, runs, draft, usage } = conversation;
  const ids = new Set<string | null>(kept.map(({ entry }) => entry.id)).add(null);
  const keptTurns = new Set(kept.map(({ entry }) => entry.turn)).add(turns);
  const changed = conversation.changed.saved();
  return {
    dialect: attributes.dialect,
    intents: writer.intents,
    turns,
    ...(turn ? { turn: turnCheckpoint(dialect, turn) } : {}),
    started: runs
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
    number,
    startedAt,
    lastAt,
    resumes,
    intents: recordsStarts(turn),
    prompt: storedPrompt(dialect, prompt),
    ...(ended ? { ended } : {}),
    ...(suspended ? { suspended: waiting(suspended) } : {}),
    ...(signal ? { signal } : {}),
  };
}

function waiting<M>({ reason, calls }: NonNullable<TurnState<M>["suspended"]>): { reason: string; calls?: string[] } {
  return calls ? { reason, calls: [...calls] } : { reason };
}

function storedPrompt<M>(dialect: Dialect<M>, entry: Entry<M>): TurnCheckpoint["prompt"] {
  const { id, turn, step, at: first, message, metadata, model, synthetic } = entry;
  return {
    id,
    turn,
    step,
    message: encoded(dialect, message),
    first,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(model === undefined ? {} : { model }),
    ...(synthetic === undefined ? {} : { synthetic }),
  };
}

function queuedItem<M>(conversation: Conversation<M>, of: string): QueuedItem {
  const { id, prompt, at: queuedAt, metadata, model } = conversation.queued(of)!;
  return {
    id,
    prompt: encoded(conversation.dialect, prompt),
    queuedAt,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(model === undefined ? {} : { model }),
  };
}

/** All attributes, as the record that follows the epoch has them. */
export function attributesRecord({ notes: _notes, title, labels, ...rest }: Attributes): SessionAttributes {
  return {
    kind: "session",
    ...rest,
    ...(title === "" ? {} : { title }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
  };
}
