import type { Conversation } from "../conversation/conversation.ts";
import type { Item } from "../conversation/item.ts";
import type { AppStateRecord, Checkpoint, SessionRecord } from "../conversation/records/records.ts";
import { defined } from "../defined.ts";
import { HoldfastError } from "../errors.ts";
import { synthesizeResultSaying } from "../view/repairs.ts";
import { attributesRecord } from "./checkpoint.ts";
import { epochRecords } from "./epoch.ts";
import { changedStretch, madeUp, type Retained, retain, settle, unhide } from "./retained.ts";
import { pairsIn, stepsOf } from "./step-integrity.ts";

export interface ForkOptions {
  /** The id of the session being forked. */
  readonly from: string;
  /** The last message to include; without it, the whole conversation. */
  readonly at?: string;
  readonly title?: string;
  /** In place of the source's folder. */
  readonly cwd?: string;
  /** In place of the source's labels with the same names. */
  readonly labels?: Record<string, string>;
  /** The application's state as of `at`. Default: as it is now. */
  readonly appState?: readonly AppStateRecord[];
}

/**
 * The first records of a session that starts with another session's conversation (C33): an `epoch` with the reason
 * "fork", `session`, and the retained messages, up to and including the whole step of `at` and the results of its
 * calls.
 * Attributes, notes and the application's state are the source's, except the parent: nobody waits for the fork. Turn
 * numbers continue. No turn is open, whatever the source is doing, and calls without a result get one that says so.
 * Queued prompts, the keys of prompts, and usage stay with the source, which delivers, answers and pays for them once.
 * Throws MESSAGE_UNKNOWN.
 */
export function forkRecords<M>(
  conversation: Conversation<M>,
  { from, at, title, cwd, labels, appState }: ForkOptions,
): SessionRecord[] {
  const { dialect } = conversation;
  const { parent: _parent, ...attributes } = conversation.attributes;
  const kept = at === undefined ? conversation.items : upTo(conversation, at);
  const retained = kept.map((item) => retain(item, dialect));
  settle(retained, dialect);
  const carried = [...retained, ...resultsForOpenCalls(conversation, retained)];
  const changed = changedStretch(conversation, carried);
  const turns = at === undefined ? conversation.turns : Math.max(0, ...kept.map(({ entry }) => entry.turn));
  const checkpoint: Checkpoint = {
    dialect: attributes.dialect,
    intents: false,
    turns,
    started: [],
    queue: [],
    notes: attributes.notes,
    usage: {},
    usageByTurn: [],
    ...(changed ? { changed } : {}),
  };
  const forkedFrom = { session: from, at: at ?? kept.at(-1)?.entry.id ?? "" };
  const named = {
    ...attributes,
    title: title ?? attributes.title,
    ...defined({ cwd }),
    labels: { ...attributes.labels, ...labels },
    forkedFrom,
  };
  const epoch = { kind: "epoch", reason: "fork", carried: carried.length } as const;
  return epochRecords(epoch, checkpoint, attributesRecord(named), carried, appState ?? conversation.appState.saved());
}

/** Whole steps and the results of their calls, including results recorded after other messages. */
function upTo<M>(conversation: Conversation<M>, at: string): Item<M>[] {
  const { items, dialect } = conversation;
  const last = conversation.find(at);
  if (!last) {
    const shown = String(at).slice(0, 80);
    const message = `The conversation has no message ${shown} to fork at. Nothing was written. Take an id from its \`entries\`: messages dropped by a replacement are no longer there.`;
    throw new HoldfastError("MESSAGE_UNKNOWN", message, { id: shown });
  }
  const kept = new Set(items.slice(0, items.indexOf(last) + 1).map(({ entry }) => entry.id));
  const steps = stepsOf(items);
  const pairs = [...pairsIn(items, dialect), ...pairsIn(unhide(items, dialect), dialect)];
  for (let before = -1; before !== kept.size; ) {
    before = kept.size;
    for (const step of steps.values()) if (step.some((id) => kept.has(id))) for (const id of step) kept.add(id);
    for (const { item, call, answer } of pairs) {
      // A result that the provider is still working on may come in a later response, outside the fork.
      if (answer && call.by === "agent" && kept.has(item.entry.id)) kept.add(answer.item.entry.id);
    }
  }
  return items.filter(({ entry }) => kept.has(entry.id));
}

const FORKED =
  "The conversation was forked here, before there was a result. In the session that it was forked from, this call may have run, or may be running: check before repeating it.";

/** A result for each call that could still have waited for one. */
function resultsForOpenCalls<M>(conversation: Conversation<M>, carried: readonly Retained<M>[]): Retained<M>[] {
  const { dialect } = conversation;
  return pairsIn(carried, dialect).flatMap(({ call, item, index, answer, isLast }) => {
    if (answer || !isLast || call.by === "provider") return [];
    const { id, name, input } = call;
    const found = { id, name, input, message: item.entry.id, index, state: "unrecorded" } as const;
    return synthesizeResultSaying(dialect, found, FORKED, "forked").map((made) =>
      madeUp(conversation, made, item.entry.turn),
    );
  });
}
