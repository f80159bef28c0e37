import { type Item, isShown } from "../conversation/item.ts";
import type { Call, Dialect } from "../dialects/dialect.ts";
import { pair, type Reader } from "../dialects/order/pairing.ts";
import { HoldfastError } from "../errors.ts";

/** A call that the model is shown, and its result. */
export interface CallWithResult<M> {
  readonly call: Call;
  readonly item: Item<M>;
  readonly index: number;
  readonly answer: { readonly item: Item<M>; readonly index: number } | null;
  /** The call is in the last exchange, so it can still get its result. */
  readonly isLast: boolean;
  /** The first entry of the next exchange. */
  readonly before: Item<M> | null;
}

/**
 * The items that decide how the calls and results of these entries pair, so that the rest of a long conversation need
 * not be read: the ranges around the entries, with their whole steps, and the live end. A range ends where an exchange
 * ends, counting hidden messages. While changes are pending, all items: they change what is shown.
 */
export function around<M>(
  { items, dialect, changed }: { items: readonly Item<M>[]; dialect: Dialect<M>; changed: { isPending: boolean } },
  ids: ReadonlySet<string>,
): readonly Item<M>[] {
  if (changed.isPending) return items;
  const steps = new Set<string>();
  for (const { entry } of items) if (ids.has(entry.id)) steps.add(entry.step);
  const { interleaved } = dialect as Pick<Reader<M>, "interleaved">;
  const kept: Item<M>[] = [];
  let start = 0;
  let isWanted = false;
  let isClosed = false;
  const end = (at: number): void => {
    if (isWanted) for (let i = start; i < at; i++) kept.push(items[i]!);
    start = at;
    isWanted = false;
  };
  for (let at = 0; at < items.length; at++) {
    const item = items[at]!;
    if (item.role === "assistant") {
      if (isClosed && isShown(item)) end(at);
      isClosed = false;
    } else if (isShown(item)) {
      isClosed ||= item.role === "tool" ? interleaved !== true : item.role !== "other";
    }
    isWanted ||= steps.has(item.entry.step);
  }
  isWanted = true;
  end(items.length);
  return kept.length === items.length ? items : kept;
}

export function pairsIn<M>(items: readonly Item<M>[], dialect: Dialect<M>): CallWithResult<M>[] {
  const shown = items.filter(isShown);
  const { exchanges } = pair(
    shown.map(({ entry }) => entry),
    dialect,
  );
  return exchanges.flatMap(({ calls }, at) => {
    const next = exchanges[at + 1]?.assistant[0];
    return calls.map(({ call, entry, index, answer }) => ({
      call,
      item: shown[entry]!,
      index,
      answer: answer && { item: shown[answer.entry]!, index: answer.index },
      isLast: next === undefined,
      before: next === undefined ? null : shown[next]!,
    }));
  });
}

export function placeOf<M>({ entry }: Item<M>, index: number): string {
  return `${index} ${entry.id}`;
}

/** Throws STEP_SPLIT unless each step is kept whole, in order and contiguous, or dropped whole (R3, C34). */
export function requireWholeSteps<M>(before: readonly Item<M>[], after: readonly Item<M>[]): void {
  const places = new Map(after.map(({ entry }, at) => [entry.id, at]));
  const were = new Map(before.map(({ entry }, at) => [entry.id, at]));
  for (const step of stepsOf(before).values()) {
    if (step.length === 1) continue;
    const missing = step.filter((id) => !places.has(id));
    if (missing.length === step.length) continue;
    if (missing.length > 0) {
      const kept = step.find((id) => places.has(id))!;
      const why = `${kept} belongs to the same response as ${missing.join(", ")}, and a response is kept whole or not at all`;
      throw stepSplit(why, missing);
    }
    for (const [n, id] of step.slice(1).entries()) {
      const between = after.slice(places.get(step[n]!)! + 1, places.get(id)!);
      const isApart = between.some(({ entry }) => {
        const was = were.get(entry.id) ?? -1;
        return was < were.get(step[n]!)! || was > were.get(id)!;
      });
      if (isApart || places.get(id)! < places.get(step[n]!)!) {
        throw stepSplit(`${step.join(", ")} are one response and must stay together in this order`, step);
      }
    }
  }
}

/** The entry ids of each step. */
export function stepsOf<M>(items: readonly Item<M>[]): Map<string, string[]> {
  const steps = new Map<string, string[]>();
  for (const { entry } of items) {
    const step = steps.get(entry.step);
    if (step) step.push(entry.id);
    else steps.set(entry.step, [entry.id]);
  }
  return steps;
}

/** Throws STEP_SPLIT if a call loses its result, or a result its call (R3). */
export function requirePairs<M>(
  before: readonly CallWithResult<M>[],
  after: readonly Item<M>[],
  dialect: Dialect<M>,
): void {
  const kept = new Map(after.map((item) => [item.entry.id, item]));
  const pairs = pairsIn(after, dialect);
  const calls = new Map(pairs.map((one) => [placeOf(one.item, one.index), one]));
  const answers = new Map(
    pairs.flatMap(({ item, index, answer }) =>
      answer ? [[placeOf(answer.item, answer.index), placeOf(item, index)]] : [],
    ),
  );
  const results: string[] = [];
  const callers: string[] = [];
  for (const { item, index, answer } of before) {
    if (!answer) continue;
    const place = placeOf(item, index);
    if (calls.get(place)?.answer === null) results.push(answer.item.entry.id);
    const result = kept.get(answer.item.entry.id);
    // Hiding or replacing a call does the same to its results.
    const isHidden = kept.has(item.entry.id) && !calls.has(place);
    if (!result || !isShown(result) || isHidden) continue;
    if (answers.get(placeOf(answer.item, answer.index)) !== place) callers.push(item.entry.id);
  }
  if (results.length > 0) {
    throw stepSplit(`${listIds(results)} would be missing after its call, and a call is kept with its result`, results);
  }
  if (callers.length > 0) {
    throw stepSplit(`a result would lose its call in ${listIds(callers)}, or be too far after it`, callers);
  }
}

function listIds(ids: readonly string[]): string {
  return [...new Set(ids)].join(", ");
}

export function stepSplit(why: string, ids: readonly string[]): HoldfastError {
  const message = `This would split a step: ${why}. Nothing was changed. Take whole steps with their results; if something was recorded meanwhile, read \`session.entries\` again.`;
  return new HoldfastError("STEP_SPLIT", message, { ids: [...new Set(ids)] });
}
