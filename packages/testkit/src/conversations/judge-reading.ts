import type { JournalRecord } from "holdfast";
import type { Evidence, ConversationFault as Fault } from "./evidence.ts";
import { messagesOf } from "./judge-history.ts";

/** What a reader sees besides the view: entries, metadata, notes, title, usage. */
export function readingFaults(evidence: Evidence): Fault[] {
  return [...entryFaults(evidence), ...metadataFaults(evidence), ...usageFaults(evidence)];
}

/** The ids of the messages as recorded, except that an answer comes before what arrived while it streamed (R1). */
function inOrder(records: readonly JournalRecord[]): string[] {
  const ordered: { readonly id: string; readonly seq: number }[] = [];
  let answer: { readonly asked: number; step: unknown } | null = null;
  for (const { kind, id, seq, step, asked } of records) {
    if (kind === "repair") answer = typeof asked === "number" ? { asked, step: null } : null;
    if (kind !== "message") continue;
    if (answer) answer.step ??= step;
    const isAnswer = answer?.step === step;
    const since = isAnswer ? ordered.findIndex((one) => one.seq > answer!.asked) : -1;
    ordered.splice(since < 0 ? ordered.length : since, 0, { id: String(id), seq: isAnswer ? 0 : seq });
  }
  return ordered.map(({ id }) => id);
}

/** Everything acknowledged since the last replacement, once and in order. */
function entryFaults({ log, history, reading }: Evidence): Fault[] {
  const faults: Fault[] = [];
  const epochSeq = history.findLast(({ kind }) => kind === "epoch")?.seq ?? 0;
  const places = new Map<string, number>();
  for (const [at, { id }] of reading.entries.entries()) {
    if (places.has(id)) faults.push({ what: "twice", message: `entry ${id}` });
    places.set(id, at);
  }
  const recorded = inOrder(history.filter(({ carried, seq }) => carried !== true && seq > epochSeq));
  const tried = new Set(log.of("start", "append", "commit").flatMap(({ op }) => [...messagesOf(op).keys()]));
  let before = -1;
  for (const id of recorded) {
    const at = places.get(id);
    if (at === undefined) {
      faults.push({ what: "lost", message: `message ${id} is in the journal, and not among the entries` });
      continue;
    }
    if (at < before) faults.push({ what: "order", message: `entry ${id} comes too early` });
    before = Math.max(before, at);
  }
  const known = new Set([...history.map(({ id }) => id), ...tried]);
  for (const { id, synthetic } of reading.entries)
    if (!known.has(id) && synthetic === undefined) faults.push({ what: "invented", message: `entry ${id}` });
  return faults;
}

/** C31: the last acknowledged value is there, or one that was tried after it. */
function metadataFaults({ log, reading }: Evidence): Fault[] {
  const faults: Fault[] = [];
  const entries = new Map(reading.entries.map((entry) => [entry.id, entry]));
  const check = (
    what: string,
    tries: readonly { readonly value: unknown; readonly isOk: boolean }[],
    found: unknown,
  ): void => {
    const last = tries.findLastIndex(({ isOk }) => isOk);
    const allowed = tries.slice(Math.max(last, 0)).map(({ value }) => value);
    if (last < 0) allowed.push(undefined);
    if (!allowed.includes(found))
      faults.push({ what: "metadata", message: `${what} is ${found}, and should be one of ${allowed}` });
  };
  const patches = log.of("patch").filter(({ answer }) => answer !== "no");
  for (const [place, tries] of Map.groupBy(patches, ({ op }) => `${op.id} ${op.key}`)) {
    const { id, key } = tries[0]!.op;
    const entry = entries.get(id);
    // Where a replacement dropped the result that closes a call, it is made again, under the same id.
    const isMadeAnew = id.includes("~") && log.of("replace", "undo").some(({ at }) => at > tries[0]!.at);
    if (!entry || isMadeAnew) continue;
    const values = tries.map(({ op, answer }) => ({ value: op.value, isOk: answer === "ok" }));
    check(`metadata ${place}`, values, entry.metadata[key]);
  }
  for (const [name, tries] of Map.groupBy(log.of("note"), ({ op }) => op.name)) {
    const values = tries.map(({ op, answer }) => ({ value: op.value, isOk: answer === "ok" }));
    check(`note ${name}`, values, reading.attributes.notes[name]);
  }
  const titles = log.of("rename").map(({ op, answer }) => ({ value: op.title, isOk: answer === "ok" }));
  if (titles.some(({ isOk }) => isOk)) check("the title", titles, reading.attributes.title);
  return faults;
}

/** It adds up over all epochs. */
function usageFaults({ log, history, reading }: Evidence): Fault[] {
  const tokensOf = (usage: unknown): number => (usage as { inputTokens?: number } | undefined)?.inputTokens ?? 0;
  const recorded = history.reduce((sum, { kind, usage }) => sum + (kind === "usage" ? tokensOf(usage) : 0), 0);
  const shown = reading.usage.inputTokens ?? 0;
  const tried = log.of("usage", "append", "commit").filter(({ answer }) => answer !== "no");
  const sum = (some: typeof tried): number => some.reduce((total, { op }) => total + op.tokens, 0);
  const least = sum(tried.filter(({ answer }) => answer === "ok"));
  if (shown === recorded && least <= shown && shown <= sum(tried)) return [];
  return [
    { what: "usage", message: `${shown} tokens are shown, ${recorded} recorded, ${least} to ${sum(tried)} were tried` },
  ];
}
