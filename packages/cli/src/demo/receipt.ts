import { isDeepStrictEqual } from "node:util";
import type { CallAccount, JournalRecord } from "holdfast";
import type { Item } from "../transcript/item.ts";
import { callWords } from "../transcript/words.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { type JournalContent, recordedIn } from "./history.ts";
import type { RemovedRecord } from "./remove-record.ts";

/** A kill, and what the reopened journal said. */
export interface Kill {
  readonly life: number;
  readonly pid: number;
  /** The planned moment. */
  readonly aim: string;
  /** The actual moment, in words. */
  readonly where: string;
  readonly calls: readonly {
    readonly what: string;
    /** How far it got. */
    readonly words: string;
    readonly effect: CallAccount["effect"];
    /** For a command that outlived its agent. */
    readonly pid?: number;
  }[];
  /** Calls of the same step that already had their results. */
  readonly answered: number;
  /** Characters of the answer being streamed: received, and found in the journal. */
  readonly streamed: { readonly heard: number; readonly found: number };
  /** Bytes of a record that was being written and was never acknowledged. */
  readonly tornBytes: number;
  /** For a kill during a compaction: which conversation counts. */
  readonly compaction?: "old" | "new";
}

export interface Facts {
  readonly seed: number;
  readonly kills: readonly Kill[];
  /** Planned moments that never came, because the turn ended first. */
  readonly missed: readonly string[];
  readonly acknowledged: Acknowledgements;
  /** The records after each death, and at the end. */
  readonly readings: readonly (readonly JournalRecord[])[];
  /** Damage reported by the store. */
  readonly damage: readonly string[];
  /** Conversations checked against the provider's rules, and the violations. */
  readonly requests: { readonly checked: number; readonly violations: readonly string[] };
  /** Cases in which the journal has text that was never streamed. */
  readonly strange: readonly string[];
  /** Lines written by the command. */
  readonly effects: readonly string[];
  readonly files: { readonly here: Files; readonly undisturbed: Files };
  /** Sub-agent sessions, and how many of them did not finish. */
  readonly agents: { readonly sessions: number; readonly unfinished: number };
  /** What `--lose-one` removed. */
  readonly taken: RemovedRecord | null;
  readonly session: string;
  readonly ms: number;
}

/** Contents by path. */
export type Files = Readonly<Record<string, string>>;

export interface Receipt {
  readonly verdict: "kept" | "broken";
  readonly seed: number;
  readonly session: string;
  readonly kills: readonly Kill[];
  readonly missed: readonly string[];
  readonly acknowledged: {
    readonly records: number;
    readonly messages: number;
    readonly starts: number;
    readonly results: number;
    readonly compactions: number;
    readonly turns: number;
  };
  /** How many acknowledged records are there, unchanged. */
  readonly there: number;
  readonly lost: readonly string[];
  /** Records read after one death that were gone or different after a later one. */
  readonly changed: readonly string[];
  readonly strange: readonly string[];
  readonly damage: readonly string[];
  readonly calls: { readonly made: number; readonly startedTwice: readonly string[] };
  readonly effects: readonly { readonly what: string; readonly times: number }[];
  readonly requests: { readonly checked: number; readonly violations: readonly string[] };
  readonly files: { readonly compared: number; readonly different: readonly string[] };
  readonly agents: { readonly sessions: number; readonly unfinished: number };
  readonly completed: boolean;
  /** What was removed on purpose, to see whether the receipt notices. */
  readonly taken?: RemovedRecord;
  readonly ms: number;
}

/** Compares what was acknowledged with what is there. Pure. */
export function receiptOf(facts: Facts): Receipt {
  const { acknowledged, readings, seed, session, kills, missed, damage, strange, requests, agents, ms } = facts;
  const recorded = recordedIn(readings.at(-1) ?? []);
  const lost = new Map<string, string>();
  const messages = new Set<string>();
  for (const { item, life } of acknowledged.items.values()) {
    const message = item.id.replace(/\.\d+$/, "");
    messages.add(message);
    const found = recorded.items.get(item.id);
    if (!found)
      lost.set(`message ${message}`, `${itemWords(item)} (message ${message}, acknowledged in life ${life}): gone`);
    else if (!isSame(item, found))
      lost.set(
        `message ${message}`,
        `${itemWords(item)} (message ${message}, acknowledged in life ${life}): not the same`,
      );
  }
  let starts = 0;
  for (const [call, { words, times, life }] of acknowledged.starts) {
    starts += times;
    const there = recorded.starts.get(call) ?? 0;
    for (let n = there; n < times; n++)
      lost.set(`start ${call} ${n}`, `the start of "${words}" (${call}, acknowledged in life ${life}): gone`);
  }
  for (const [call, { words, output, failed, life }] of acknowledged.results) {
    const found = recorded.results.get(call);
    const what = `the result of "${words}" (${call}, acknowledged in life ${life})`;
    if (!found || found.output !== output || found.failed !== failed)
      lost.set(`result ${call}`, `${what}: ${found ? "not the same" : "gone"}`);
  }
  const { compactions } = acknowledged;
  for (let n = recorded.compactions; n < compactions; n++) lost.set(`compaction ${n}`, `compaction ${n + 1}: gone`);
  const turns = acknowledged.completed ? 1 : 0;
  if (turns > 0 && !recorded.completed) lost.set("turn", "the end of the turn: gone");
  const changed = changedIn(readings);
  for (const [record, words] of changed) {
    // It may have been written again since, but the acknowledged one is still lost.
    const key = keyOf(record);
    if (!lost.has(key) && wasAcknowledged(record, acknowledged)) lost.set(key, words);
  }
  const counts = { messages: messages.size, starts, results: acknowledged.results.size, compactions, turns };
  const records = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const startedTwice = twiceIn(recorded);
  const effects = [...Map.groupBy(facts.effects, (line) => line)].map(([what, { length: times }]) => ({ what, times }));
  const different = differentIn(facts.files.here, facts.files.undisturbed);
  const completed = acknowledged.completed && recorded.completed;
  const isKept =
    lost.size === 0 &&
    changed.size === 0 &&
    strange.length === 0 &&
    damage.length === 0 &&
    startedTwice.length === 0 &&
    effects.length > 0 &&
    effects.every(({ times }) => times === 1) &&
    requests.violations.length === 0 &&
    different.length === 0 &&
    agents.unfinished === 0 &&
    completed;
  return {
    verdict: isKept ? "kept" : "broken",
    seed,
    session,
    kills,
    missed,
    acknowledged: { records, ...counts },
    there: records - lost.size,
    lost: [...lost.values()],
    changed: [...changed.values()],
    strange,
    damage,
    calls: { made: recorded.starts.size, startedTwice },
    effects,
    requests,
    files: { compared: Object.keys(facts.files.undisturbed).length, different },
    agents,
    completed,
    ...(facts.taken ? { taken: facts.taken } : {}),
    ms,
  };
}

/** Compares what never changes once acknowledged; a call's state does. */
function isSame(said: Item, found: Item): boolean {
  const content = (item: Item): unknown =>
    item.kind === "call" ? [item.call, item.name, item.input] : [item.text, "files" in item ? item.files : undefined];
  const kindOf = ({ kind }: Item): string => kind;
  return kindOf(said) === kindOf(found) && isDeepStrictEqual(content(said), content(found));
}

function itemWords(item: Item): string {
  if (item.kind === "call") return `the call "${callWords(item, 60)}"`;
  const text = item.text.replaceAll(/\s+/g, " ");
  return `the ${item.kind} "${text.length > 40 ? `${text.slice(0, 40)}…` : text}"`;
}

/** A journal only grows: returns records that are gone or different after a later death. */
function changedIn(readings: readonly (readonly JournalRecord[])[]): Map<JournalRecord, string> {
  const words = new Map<JournalRecord, string>();
  const known = new Set<number>();
  for (let n = 1; n < readings.length; n++) {
    const now = new Map(readings[n]!.map((record) => [record.seq, record]));
    for (const before of readings[n - 1]!) {
      const after = now.get(before.seq);
      if ((after && isDeepStrictEqual(before, after)) || known.has(before.seq)) continue;
      known.add(before.seq);
      words.set(before, `record ${before.seq} (${before.kind}) ${after ? "was changed" : "is gone"} after death ${n}`);
    }
  }
  return words;
}

/** The key in `lost`. */
function keyOf({ kind, seq, id, call }: JournalRecord): string {
  if (kind === "message") return `message ${String(id)}`;
  return kind === "tool.ended" ? `result ${String(call)}` : `record ${seq}`;
}

/** Whether this record itself was acknowledged. */
function wasAcknowledged({ kind, id, call }: JournalRecord, { items, starts, results }: Acknowledgements): boolean {
  if (kind === "message") return items.has(String(id));
  if (kind === "tool.ended") return results.has(String(call));
  return kind === "tool.started" && starts.has(String(call));
}

/** Calls that are unsafe to repeat must have started at most once. */
function twiceIn({ starts, safe, items }: JournalContent): string[] {
  const words = new Map<string, string>();
  for (const item of items.values()) if (item.kind === "call") words.set(item.call, callWords(item, 60));
  return [...starts].flatMap(([call, times]) =>
    times > 1 && !safe.has(call) ? [`${words.get(call) ?? call}: ${times} times`] : [],
  );
}

function differentIn(here: Files, undisturbed: Files): string[] {
  const paths = new Set([...Object.keys(here), ...Object.keys(undisturbed)]);
  return [...paths].sort().flatMap((path) => {
    if (here[path] === undisturbed[path]) return [];
    return [
      here[path] === undefined ? `${path}: missing` : undisturbed[path] === undefined ? `${path}: unexpected` : path,
    ];
  });
}
