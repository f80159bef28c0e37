import { type Admission, readable } from "../admit/admit.ts";
import { invalid } from "../admit/refusals.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Item } from "../conversation/item.ts";
import type { EditRecord } from "../conversation/records/records.ts";
import type { Entry } from "../dialects/dialect.ts";
import { HoldfastError } from "../errors.ts";
import type { Json } from "../journal/record.ts";
import { settle, shownItem, unhide } from "./retained.ts";
import { type CallWithResult, pairsIn, requirePairs, stepSplit, stepsOf } from "./step-integrity.ts";

/** The arguments of `edit`, copied during the call (R19). Throws RECORD_INVALID, MESSAGE_UNFIT, MESSAGE_NOT_JSON. */
export function admitEdit<M>(
  ids: readonly string[],
  shown: readonly M[],
  options: { readonly reason: string; readonly now?: boolean },
  admission: Admission<M>,
): { ids: string[]; shown: Json[]; options: { reason: string; now: boolean } } {
  const given = readable("shown", undefined, () => {
    if (!Array.isArray(ids) || !Array.isArray(shown)) throw invalid("edit needs a list of ids and a list of messages");
    return { ids: [...ids], shown: [...shown], reason: options?.reason, now: options?.now === true };
  });
  if (typeof given.reason !== "string" || given.reason.length > REASON_CHARS_MAX) {
    throw invalid(`edit needs a reason: a string of at most ${REASON_CHARS_MAX} characters`);
  }
  const reason = admission.text(given.reason);
  const messages = given.shown.map((message, index) => admission.message(message, index).stored);
  return { ids: given.ids, shown: messages, options: { reason, now: given.now } };
}

/** Every epoch repeats it with each shown message. */
const REASON_CHARS_MAX = 64 * 1024;

/**
 * The record that shows other messages in place of these (R12). Results of the removed calls are removed too, unless
 * `shown` makes the same call again without a result. Results can be replaced alone if `shown` answers the same calls.
 * An entry that was already replaced is not shown, so it is MESSAGE_UNKNOWN here: name its replacement. `shown`:
 * messages in stored form. Throws STEP_SPLIT, MESSAGE_UNKNOWN.
 */
export function editRecord<M>(
  conversation: Conversation<M>,
  ids: readonly string[],
  shown: readonly Json[],
  { reason, now }: { readonly reason: string; readonly now?: boolean },
  newId: () => string,
): EditRecord {
  const { dialect } = conversation;
  requireShown(conversation, ids);
  const id = newId();
  const messages = shown.map((message) => ({ id: newId(), message }));
  const items = unhide(conversation.items, dialect);
  const made = messages.map(({ id: of, message }) => shownItem(conversation, of, id, message));
  const before = pairsIn(items, dialect);
  const gone = new Set(ids);
  requireSteps(items, gone);
  for (const result of resultsOf(items, before, gone, openIn(made, conversation), conversation)) gone.add(result);

  const after = items.flatMap((item) => (gone.has(item.entry.id) ? [markReplaced(item, id)] : [item]));
  const first = after.findIndex(({ entry }) => gone.has(entry.id));
  after.splice(first, 0, ...made);
  settle(after, dialect);
  requirePairs(before, after, dialect);
  requireResults(pairsIn(after, dialect), made, before, gone);

  const ordered = items.filter(({ entry }) => gone.has(entry.id)).map(({ entry }) => entry.id);
  return { kind: "edit", id, ids: ordered, shown: messages, reason, ...(now ? { now } : {}) };
}

function requireShown<M>(conversation: Conversation<M>, ids: readonly string[]): void {
  const unknown = ids.filter((id) => !conversation.find(id));
  if (unknown.length > 0 || ids.length === 0) {
    const which =
      unknown.length > 0
        ? `This conversation has no message ${unknown.map(String).join(", ")}`
        : "No message was named";
    const message = `${which}. Nothing was changed. Take ids from \`session.entries\`: messages dropped by a replacement are no longer there.`;
    throw new HoldfastError("MESSAGE_UNKNOWN", message, { ids: unknown });
  }
  const past = ids.filter((id) => conversation.find(id)!.entry.replacedBy !== undefined);
  if (past.length === 0) return;
  const by = [...new Set(past.map((id) => conversation.find(id)!.entry.replacedBy!))];
  const message = `${past.join(", ")} was already replaced by ${by.join(", ")} and is no longer shown. Nothing was changed. Name its replacement.`;
  throw new HoldfastError("MESSAGE_UNKNOWN", message, { ids: past, replacedBy: by });
}

function requireSteps<M>(items: readonly Item<M>[], gone: ReadonlySet<string>): void {
  for (const step of stepsOf(items).values()) {
    const missing = step.filter((id) => !gone.has(id));
    if (missing.length === 0 || missing.length === step.length) continue;
    const named = step.find((id) => gone.has(id))!;
    throw stepSplit(
      `${named} belongs to the same step as ${missing.join(", ")}, and a step is replaced as a whole`,
      missing,
    );
  }
}

/** A shown call may lack a result only if the call that it replaces did. */
function requireResults<M>(
  after: readonly CallWithResult<M>[],
  made: readonly Item<M>[],
  before: readonly CallWithResult<M>[],
  gone: ReadonlySet<string>,
): void {
  const waited = before.filter(({ item, answer, isLast }) => gone.has(item.entry.id) && !answer && isLast);
  const isMade = new Set(made);
  for (const { item, call, answer, isLast } of after) {
    if (answer || call.by === "provider" || !isMade.has(item)) continue;
    if (isLast && waited.some((one) => one.call.id === call.id)) continue;
    throw stepSplit(`\`shown\` makes the call ${call.id} without a result`, [...gone]);
  }
}

/** The ids of the calls in these messages that have no result. */
function openIn<M>(made: readonly Item<M>[], { dialect }: Conversation<M>): Set<string> {
  return new Set(
    pairsIn(made, dialect)
      .filter(({ answer }) => !answer)
      .map(({ call }) => call.id),
  );
}

/**
 * The results that are removed with their calls. A result message that has text of its own or answers other calls
 * stays; the model is shown the parts that still have a call.
 */
function resultsOf<M>(
  items: readonly Item<M>[],
  pairs: readonly CallWithResult<M>[],
  gone: ReadonlySet<string>,
  open: ReadonlySet<string>,
  { dialect }: Conversation<M>,
): string[] {
  const going = new Set<string>();
  const staying = new Set<string>();
  for (const { item, call, answer } of pairs) {
    if (!answer) continue;
    const { entry } = answer.item;
    const isNeeded = !gone.has(item.entry.id) || open.has(call.id);
    const speaks = dialect.text(entry.message).trim() !== "";
    (isNeeded || speaks ? staying : going).add(entry.id);
  }
  const all: string[] = [];
  for (const step of stepsOf(items).values()) {
    const goes = step.every((id) => going.has(id) && !staying.has(id));
    if (goes) for (const id of step) if (!gone.has(id)) all.push(id);
  }
  return all;
}

function markReplaced<M>(item: Item<M>, replacedBy: string): Item<M> {
  const entry: Entry<M> = { ...item.entry, replacedBy };
  return { ...item, entry };
}
