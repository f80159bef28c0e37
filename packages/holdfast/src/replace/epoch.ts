import { reading } from "../admit/admit.ts";
import { invalid } from "../admit/refusals.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Item } from "../conversation/item.ts";
import type {
  AppStateRecord,
  Checkpoint,
  EpochRecord,
  SessionAttributes,
  SessionRecord,
} from "../conversation/records/records.ts";
import { type CallPlace, sameCalls } from "../conversation/tool-starts.ts";
import { defined } from "../defined.ts";
import { HoldfastError } from "../errors.ts";
import { openCalls, type UnansweredCall } from "../view/interruption.ts";
import { liveRepair, type TurnActivity } from "../view/messages.ts";
import { synthesizeResult } from "../view/repairs.ts";
import { attributesRecord, checkpointOf, spreadOut } from "./checkpoint.ts";
import {
  changedStretch,
  madeUp,
  type ReplaceInput,
  type Retained,
  retain,
  retainedRecord,
  retainGiven,
  settle,
  unhide,
} from "./retained.ts";
import {
  around,
  type CallWithResult,
  pairsIn,
  placeOf,
  requirePairs,
  requireWholeSteps,
  stepsOf,
} from "./step-integrity.ts";

const REASONS = ["compaction", "clear", "rewind", "import"] as const;

/** The reason given to `replace`. Throws RECORD_INVALID, RECORD_NOT_JSON. */
export function checkReason(options: { readonly reason: ReplaceOptions["reason"] }): ReplaceOptions["reason"] {
  const wanted = reading("options", () => options?.reason);
  const reason = REASONS.find((one) => one === wanted);
  if (!reason) throw invalid(`the reason must be one of ${REASONS.join(", ")}`);
  return reason;
}

export interface ReplaceOptions {
  readonly reason: (typeof REASONS)[number];
  /** Whether this process works on the turn, and since when: only then can a tool be running. */
  readonly activity: TurnActivity;
  /** The seq of the first record of the replaced epoch; without it the replacement cannot be undone. */
  readonly undo?: number;
  /** The entry after which signed reasoning saw another past (undo). */
  readonly changedFrom?: string | null;
  /**
   * Only for sync, whose array decides what is kept: the ids of replaced entries, and those of their replacements. Tool
   * starts move from the old entry's calls to the same calls of the new one.
   */
  readonly renewed?: ReadonlyMap<string, string>;
  /**
   * Whether the current writer records every tool start (R5). Default: what the conversation's last writer did, which
   * is an earlier one if this is the current writer's first record.
   */
  readonly intents?: boolean;
  /** The application's state as of what is kept. Default: as it is. */
  readonly appState?: readonly AppStateRecord[];
}

/**
 * The records of a new epoch that holds this conversation (R11, S15, S16): `epoch`, `session` with all attributes, and
 * a carried `message` for each entry.
 *
 * Steps must be whole, with their results, or it throws STEP_SPLIT (R3), with one exception, so that callers can write
 * `entries.slice(-20)`. If the given entries end with the end of the conversation and start inside a step, or with
 * results whose calls are missing, the entries before them that complete the step are kept too: better to keep a few
 * entries more than to lose the running turn's last results, or to have a compaction fail now and then. If that would
 * restore everything that was left out, the omission was intended, and is refused.
 *
 * Throws CALLS_OPEN if it would drop a call whose tool is running, and MESSAGE_ID_TAKEN. Hiding and editing that wait
 * for the next turn take effect in the new epoch, unless a turn is open.
 */
export function replacement<M>(
  conversation: Conversation<M>,
  items: readonly ReplaceInput<M>[],
  options: ReplaceOptions,
  newId: () => string,
): SessionRecord[] {
  const { dialect, attributes } = conversation;
  const all = retainGiven(conversation, items, newId);
  const near = around(conversation, new Set(all.map(({ entry }) => entry.id)));
  const before = pairsIn(near, dialect);
  const whole = pairsIn(unhide(near, dialect), dialect);
  const moved = movedCalls(conversation, all, options.renewed);
  const placed = all.map((one) => atItsPlace(one, moved));
  const given = options.renewed ? placed : withWholeTail(conversation, near, [...before, ...whole], placed);
  requireRunningCalls(conversation, before, given, moved, options.activity);
  requireWholeSteps(near, given);
  requirePairs(whole, unhide(given, dialect), dialect);
  const isPending = comeIntoForce(conversation, given);
  requirePairs(before, given, dialect);
  const carried = withResults(conversation, near, given, options, newId);
  const changed = changedStretch(conversation, carried, options.changedFrom);
  const { changed: _, ...saved } = checkpointOf(conversation, carried, moved);
  const checkpoint: Checkpoint = {
    ...leftBehind(conversation, saved, carried, options),
    intents: options.intents ?? saved.intents,
    ...(changed ? { changed } : {}),
    ...(isPending ? { pending: true } : {}),
  };
  const { reason, undo } = options;
  const epoch = { kind: "epoch", reason, carried: carried.length, ...defined({ undo }) } as const;
  const { started } = checkpoint;
  const ends = conversation.toolStarts.earlyEnds.filter(({ call }) =>
    started.some((one) => one.message === null && one.call === call),
  );
  const kept = [...conversation.promptKeys.saved(), ...(options.appState ?? conversation.appState.saved())];
  return [...epochRecords(epoch, checkpoint, attributesRecord(attributes), carried, kept), ...ends];
}

/** New positions of calls whose message was replaced, keyed by their old positions. */
type MovedCalls = ReadonlyMap<string, CallPlace>;

/** Calls match by id; among several with one id in a message, by order (R9). */
function movedCalls<M>(
  conversation: Conversation<M>,
  given: readonly Retained<M>[],
  renewed: ReadonlyMap<string, string> = new Map(),
): MovedCalls {
  const moved = new Map<string, CallPlace>();
  if (renewed.size === 0) return moved;
  const entries = new Map(given.map(({ entry }) => [entry.id, entry]));
  for (const [old, id] of renewed) {
    const was = conversation.find(old)?.entry;
    const is = entries.get(id);
    if (!was || !is) continue;
    for (const [index, place] of sameCalls(conversation.dialect, was, is)) moved.set(`${index} ${old}`, place);
  }
  return moved;
}

function atItsPlace<M>(carried: Retained<M>, moved: MovedCalls): Retained<M> {
  const { call } = carried.entry;
  const place = call && moved.get(`${call.index} ${call.message}`);
  return place ? { ...carried, entry: { ...carried.entry, call: place } } : carried;
}

/** `kept`: what else carries over, in records of its own. */
export function epochRecords<M>(
  epoch: Omit<EpochRecord, "checkpoint">,
  whole: Checkpoint,
  attributes: SessionAttributes,
  carried: readonly Retained<M>[],
  kept: readonly SessionRecord[],
): SessionRecord[] {
  const { checkpoint, behind } = spreadOut(whole, ({ id }, turn) =>
    carried.some(({ entry }) => entry.id === id && entry.turn === turn),
  );
  return [{ ...epoch, checkpoint }, attributes, ...behind, ...kept, ...carried.map(retainedRecord)];
}

/**
 * Applies pending hiding, showing and replacing. While a turn is open, they keep waiting for the next one; otherwise a
 * request could end with the model's own words (R2). Returns true if something waits. An edit whose replaced entries
 * are not given has nothing to wait for.
 */
function comeIntoForce<M>(conversation: Conversation<M>, given: Retained<M>[]): boolean {
  const { turn, dialect } = conversation;
  const before = given.map(({ hidden }) => hidden);
  settle(given, dialect);
  if (!turn || turn.ended) return false;
  const steps = new Map(given.map(({ entry }) => [entry.id, entry.step]));
  const replacing = new Set(given.map(({ entry }) => steps.get(entry.replacedBy ?? "")));
  let isPending = false;
  for (const [at, item] of given.entries()) {
    const { id, step, synthetic } = item.entry;
    const isChanged = item.hidden !== before[at] && conversation.find(id) !== null;
    const isEdit = !item.hidden && synthetic !== undefined;
    if (!isChanged || (isEdit && !replacing.has(step))) continue;
    item.hidden = before[at]!;
    isPending = true;
  }
  return isPending;
}

/**
 * If the given entries end with the end of the conversation, completes their steps and adds the calls of their results.
 * `near`: the items around the given ones.
 */
function withWholeTail<M>(
  { items, dialect }: Conversation<M>,
  near: readonly Item<M>[],
  pairs: readonly CallWithResult<M>[],
  given: Retained<M>[],
): Retained<M>[] {
  let head = given.length;
  let from = near.length;
  while (head > 0 && from > 0 && given[head - 1]!.entry.id === near[from - 1]!.entry.id) {
    head -= 1;
    from -= 1;
  }
  if (head === given.length || from === 0) return given;
  const places = new Map(near.map(({ entry }, at) => [entry.id, at]));
  const starts = new Map<string, number>();
  for (const step of stepsOf(near).values()) for (const id of step) starts.set(id, places.get(step[0]!)!);
  for (const { item, answer } of pairs) {
    if (!answer) continue;
    const { id } = answer.item.entry;
    starts.set(id, Math.min(starts.get(id)!, places.get(item.entry.id)!));
  }
  let start = from;
  for (let at = near.length - 1; at >= start; at--) start = Math.min(start, starts.get(near[at]!.entry.id)!);
  const front = near.slice(start, from);
  const known = new Set(given.map(({ entry }) => entry.id));
  if (front.some(({ entry }) => known.has(entry.id))) return given;
  // `near` contains every item from `start` on.
  const before = items[items.length - near.length + start - 1];
  const neighbour = given[head - 1];
  if (neighbour === undefined ? before === undefined : before?.entry.id === neighbour.entry.id) return given;
  return [...given.slice(0, head), ...front.map((item) => retain(item, dialect)), ...given.slice(head)];
}

/** Otherwise the outcome would belong to no call, and the model would not know that it made the call. */
function requireRunningCalls<M>(
  { turn, toolStarts }: Conversation<M>,
  pairs: readonly CallWithResult<M>[],
  carried: readonly Retained<M>[],
  moved: MovedCalls,
  activity: TurnActivity,
): void {
  if (activity.kind !== "active" || !turn || turn.ended) return;
  const kept = new Set<string | null>(carried.map(({ entry }) => entry.id)).add(null);
  const answers = new Map(pairs.map(({ item, index, answer }) => [placeOf(item, index), answer?.item.entry ?? null]));
  const dropped: string[] = [];
  for (const { message, index = 0, call, startedSeq = 0, unstarted } of toolStarts.saved()) {
    if (unstarted !== undefined || kept.has(message) || moved.has(`${index} ${message}`)) continue;
    const answer = answers.get(`${index} ${message}`) ?? null;
    const isAnswered = answer !== null && answer.synthetic !== "running";
    if (startedSeq > activity.since && !isAnswered) dropped.push(call);
  }
  if (dropped.length === 0) return;
  const message =
    `These calls have running tools and would be dropped: ${dropped.join(", ")}. Nothing was changed. ` +
    "Keep the entries that make them, or wait for their results.";
  throw new HoldfastError("CALLS_OPEN", message, { calls: dropped });
}

/**
 * Adds a result for each call that can no longer get one, if the model is shown the call for the first time or could
 * still have waited for its result.
 */
function withResults<M>(
  conversation: Conversation<M>,
  items: readonly Item<M>[],
  carried: Retained<M>[],
  { activity, changedFrom }: ReplaceOptions,
  newId: () => string,
): Retained<M>[] {
  const { dialect } = conversation;
  // Steps left out before stay left out, so that their view does not change.
  const since = items.findIndex(({ entry }) => entry.id === changedFrom);
  const before = pairsIn(since < 0 ? items : items.slice(0, since), dialect);
  const frozen = new Set(before.filter(({ isLast }) => !isLast).map(({ item, index }) => placeOf(item, index)));
  const open = new Map(openCalls(conversation).map((call) => [`${call.index} ${call.message}`, call]));
  const made = new Map<string, Retained<M>[]>();
  const ids = new Set(carried.map(({ entry }) => entry.id));
  for (const { call, item, index, answer, before: next } of pairsIn(carried, dialect)) {
    if (answer || !next || call.by === "provider" || frozen.has(placeOf(item, index))) continue;
    const { id, name, input } = call;
    const known = open.get(placeOf(item, index));
    const found: UnansweredCall = known ?? { id, name, input, message: item.entry.id, index, state: "unrecorded" };
    const results =
      known && activity.kind === "active"
        ? liveRepair(conversation, known, activity.since)
        : synthesizeResult(dialect, found, { kind: "completed" });
    for (const result of results) {
      const unique = ids.has(result.id) ? { ...result, id: newId() } : result;
      const before = made.get(next.entry.id) ?? [];
      made.set(next.entry.id, [...before, madeUp(conversation, unique, item.entry.turn)]);
    }
  }
  return made.size === 0 ? carried : carried.flatMap((one) => [...(made.get(one.entry.id) ?? []), one]);
}

/**
 * A turn that nobody works on is over if a clear or a rewind drops all of it: the next prompt does not mention it. Text
 * streamed after the last entry is dropped with that entry. A compaction keeps both: it changes how much is said, not
 * what happened.
 */
function leftBehind<M>(
  { items, turn }: Conversation<M>,
  checkpoint: Checkpoint,
  carried: readonly Retained<M>[],
  { reason, activity }: ReplaceOptions,
): Checkpoint {
  if (reason === "compaction" || activity.kind === "active" || !turn) return checkpoint;
  const kept = new Set(carried.map(({ entry }) => entry.id));
  const ofTurn = items.filter(({ entry }) => entry.turn === turn.number);
  const isDropped = ofTurn.length > 0 && !ofTurn.some(({ entry }) => kept.has(entry.id));
  const last = items.at(-1);
  if (!last || kept.has(last.entry.id)) return checkpoint;
  const { draft: _draft, turn: saved, ...rest } = checkpoint;
  const ended = isDropped ? { ended: { outcome: "left" as const } } : {};
  return {
    ...rest,
    started: rest.started.filter(({ message }) => message !== null),
    ...(saved ? { turn: { ...saved, ...ended } } : {}),
  };
}
