import type { JournalRecord } from "holdfast";
import { canonical } from "../providers/canonical.ts";
import type { Op } from "./events.ts";
import type { Evidence, ConversationFault as Fault } from "./evidence.ts";
import type { LoggedCall } from "./log.ts";
import type { Message } from "./voices.ts";

type MessageOp = Extract<Op, { do: "start" | "append" | "commit" }>;

/** The messages of a call, by the ids they get. */
export function messagesOf(op: MessageOp): Map<string, Message> {
  const messages = op.do === "start" ? [op.message] : op.messages;
  return new Map(messages.map((message, index) => [index === 0 ? op.id : `${op.id}.${index}`, message]));
}

/**
 * Whether the epoch with this seq began without the message: the application dropped it, so it may be recorded again.
 */
function isDropped(history: Evidence["history"], id: string, seq: number): boolean {
  const epoch = history.findLastIndex((record) => record.kind === "epoch" && record.seq < seq);
  const since = history.slice(epoch + 1).filter((record) => record.seq < seq);
  return epoch >= 0 && !since.some((record) => record.kind === "message" && record["id"] === id);
}

/**
 * Messages, queue and replacements in the journal: everything acknowledged, once, complete, in order, and nothing else.
 */
export function historyFaults(evidence: Evidence): Fault[] {
  const { log, history } = evidence;
  const faults: Fault[] = [];
  const recorded = history.filter(({ kind, carried }) => kind === "message" && carried !== true);
  const byId = Map.groupBy(recorded, ({ id }) => String(id));
  const said = log.of("start", "append", "commit");
  const known = new Map<string, Message>();
  for (const { op } of said) for (const [id, message] of messagesOf(op)) known.set(id, message);
  for (const [id, records] of byId) {
    if (records.some(({ seq }, n) => n > 0 && !isDropped(history, id, seq)))
      faults.push({ what: "twice", message: `message ${id} is at ${records.map(({ seq }) => seq)}` });
    const message = known.get(id);
    if (!message) faults.push({ what: "invented", message: `nobody recorded message ${id}` });
    else if (canonical(message) !== canonical(records[0]!["message"]))
      faults.push({ what: "altered", message: `message ${id} is ${canonical(records[0]!["message"])}` });
  }
  for (const [id, tries] of Map.groupBy(said, ({ op }) => op.id)) {
    const ids = [...messagesOf(tries[0]!.op).keys()];
    const there = ids.filter((one) => byId.has(one));
    if (there.length > 0 && there.length < ids.length)
      faults.push({ what: "half", message: `of ${ids} only ${there} is there` });
    if (there.length === 0 && tries.some(({ answer }) => answer === "ok"))
      faults.push({ what: "lost", message: `${tries[0]!.op.do} of message ${id} was acknowledged` });
    if (there.length > 0 && tries.every(({ answer }) => answer === "no"))
      faults.push({ what: "invented", message: `message ${id} was refused, and is there` });
  }
  return [...faults, ...orderFaults(said, byId), ...queueFaults(evidence), ...epochFaults(evidence)];
}

/** What was tried after an acknowledgement comes after the acknowledged record. */
function orderFaults(
  said: readonly LoggedCall<MessageOp>[],
  byId: ReadonlyMap<string, readonly JournalRecord[]>,
): Fault[] {
  const seqOf = ({ op }: LoggedCall<MessageOp>): number | undefined => byId.get(op.id)?.[0]?.seq;
  const faults: Fault[] = [];
  for (const later of said) {
    const seq = seqOf(later);
    if (seq === undefined || said.some((one) => one !== later && one.op.id === later.op.id)) continue;
    const before = said.find((one) => one.answer === "ok" && one.answeredAt < later.at && (seqOf(one) ?? 0) > seq);
    if (before) faults.push({ what: "order", message: `message ${later.op.id} is before ${before.op.id}` });
  }
  return faults;
}

/** An epoch may carry it in its own record: then it was not added again. */
function isPut({ kind, carried }: JournalRecord): boolean {
  return kind === "queue.put" && carried !== true;
}

/** The queue according to the history: added and not removed, in order. */
export function queueOf(history: readonly JournalRecord[]): string[] {
  const taken = new Set(history.filter(({ kind }) => kind === "queue.take").map(({ id }) => id));
  return history.filter((record) => isPut(record) && !taken.has(record["id"])).map(({ id }) => String(id));
}

function queueFaults({ log, history, reading }: Evidence): Fault[] {
  const fault = (message: string): Fault => ({ what: "queue", message });
  const faults: Fault[] = [];
  const puts = Map.groupBy(history.filter(isPut), ({ id }) => id);
  const takes = Map.groupBy(
    history.filter(({ kind }) => kind === "queue.take"),
    ({ id }) => id,
  );
  const messages = new Map(history.map((record) => [record.kind === "message" ? record["id"] : undefined, record]));
  for (const { op, answer } of log.of("enqueue")) {
    const count = puts.get(op.id)?.length ?? 0;
    if (answer === "ok" && count === 0) faults.push(fault(`prompt ${op.id} was queued, and is nowhere`));
    if (count > 1) faults.push(fault(`prompt ${op.id} was put into the queue ${count} times`));
  }
  for (const [id, records] of takes) {
    if (records.length > 1) faults.push(fault(`prompt ${id} was taken ${records.length} times`));
    const isWithdrawn = records[0]!["withdrawn"] === true;
    if (!isWithdrawn && !messages.has(id)) faults.push(fault(`prompt ${id} was taken, but not delivered`));
    if (isWithdrawn && messages.has(id)) faults.push(fault(`prompt ${id} was withdrawn, and delivered`));
  }
  for (const { op } of log.ok("dequeue"))
    if (!takes.has(op.id)) faults.push(fault(`prompt ${op.id} was withdrawn, and is still in the queue`));
  for (const id of puts.keys())
    if (messages.has(id) && !takes.has(id)) faults.push(fault(`prompt ${id} was delivered, and is still in the queue`));
  // Delivered once: its text is recorded once, under any id.
  const texts = history
    .filter(({ kind, carried }) => kind === "message" && carried !== true)
    .map(({ message }) => canonical(message));
  for (const { op } of log.of("enqueue")) {
    const times = texts.filter((text) => text === canonical(op.message)).length;
    if (times > 1 || (times === 1 && !takes.has(op.id)))
      faults.push(fault(`prompt ${op.id} was delivered, and may be again`));
  }
  const wanted = queueOf(history);
  const shown = reading.queue.map(({ id }) => id);
  if (wanted.join() !== shown.join()) faults.push(fault(`the queue is [${shown}], and should be [${wanted}]`));
  return faults;
}

/** C7: each replacement is there completely, or not at all. */
function epochFaults({ log, history, reading }: Evidence): Fault[] {
  const faults: Fault[] = [];
  const epochs: Epoch[] = [];
  for (const [at, record] of history.entries()) {
    if (record.kind !== "epoch") continue;
    const carried = carriedBehind(history, at);
    epochs.push({ reason: record["reason"], carried });
    if (carried.length !== record["carried"]) {
      const message = `the epoch at ${record.seq} carries ${record["carried"]} messages, and has ${carried.length}`;
      faults.push({ what: "half", message });
    }
  }
  const asked = log.of("replace", "undo").filter(({ answer }) => answer !== "no");
  if (!areThere(asked, epochs)) {
    const message = `replacements that were acknowledged are not there, or others are: ${asked.map(({ op, answer }) => `${op.do} ${answer}`)}`;
    faults.push({ what: "lost", message });
  }
  const shown = new Set(reading.entries.map(({ id }) => id));
  const missing = epochs.at(-1)?.carried.filter(({ id }) => !shown.has(String(id))) ?? [];
  // A result that is now part of a message is not an entry of its own.
  const gone = missing.filter(({ message }) => !JSON.stringify(message).includes("«r"));
  if (gone.length > 0)
    faults.push({ what: "half", message: `entries of the current epoch are missing: ${gone.map(({ id }) => id)}` });
  return faults;
}

interface Epoch {
  readonly reason: unknown;
  readonly carried: readonly JournalRecord[];
}

/** Each epoch was requested, in this order; one in flight at a death may be missing. */
function areThere(asked: readonly LoggedCall<Replacing>[], epochs: readonly Epoch[]): boolean {
  const [first, ...rest] = asked;
  if (!first) return epochs.length === 0;
  const isFirst = epochs[0] !== undefined && fits(first.op, epochs[0]);
  return (isFirst && areThere(rest, epochs.slice(1))) || (first.answer === "open" && areThere(rest, epochs));
}

function carriedBehind(history: readonly JournalRecord[], at: number): JournalRecord[] {
  const carried: JournalRecord[] = [];
  for (const record of history.slice(at + 1)) {
    if (carried.length === 0 && isBetween(record)) continue;
    if (record.kind !== "message" || record["carried"] !== true) break;
    carried.push(record);
  }
  return carried;
}

/** What an epoch brings along besides messages stands before them (FORMAT.md, 10.6). */
function isBetween({ kind, carried }: JournalRecord): boolean {
  return kind === "session" || kind === "turn.prompt" || (kind !== "message" && carried === true);
}

type Replacing = Extract<Op, { do: "replace" | "undo" }>;

/**
 * Everything given is there, in order. The library may carry more: the rest of a step at the end, what was recorded
 * since, or a result that says there is none.
 */
function fits(op: Replacing, { reason, carried }: Epoch): boolean {
  if (reason !== (op.do === "undo" ? "rewind" : op.reason)) return false;
  const wanted = [...(op.do === "undo" ? op.before : op.items)];
  const mayBeMore = op.do === "undo" || op.reason === "compaction";
  for (const { id, message, synthetic } of carried) {
    const item = wanted[0];
    const isIt = typeof item === "string" ? id === item : item && canonical(message) === canonical(item);
    if (isIt) wanted.shift();
    else if (!mayBeMore && synthetic === undefined) return false;
  }
  return wanted.length === 0;
}
