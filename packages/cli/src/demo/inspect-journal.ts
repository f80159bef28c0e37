import type { ModelMessage } from "ai";
import { type Interruption, type JournalRecord, openStore, type Store, type ToolProcess } from "holdfast";
import { accountElsewhere } from "../store/account.ts";
import { recoveryLines } from "../store/damage.ts";
import { callWords } from "../transcript/words.ts";
import type { Kill } from "./receipt.ts";

/** What the journal says while no process has it open, read as any program could. */
export interface JournalFacts {
  readonly records: readonly JournalRecord[];
  readonly interruption: Interruption<ModelMessage> | null;
  readonly calls: Kill["calls"];
  readonly answered: number;
  /** The number of epoch records, one per compaction. */
  readonly epochs: number;
  readonly damage: readonly string[];
  readonly tornBytes: number;
  readonly requests: { readonly checked: number; readonly violations: readonly string[] };
  readonly agents: { readonly sessions: number; readonly unfinished: number };
  /** Recorded tool processes; most have ended. */
  readonly processes: readonly ToolProcess[];
}

export async function inspectJournal(address: string, session: string): Promise<JournalFacts> {
  await using store = await openStore(address, { app: "holdfast demo" });
  const reading = await store.read<ModelMessage>(session);
  const records = await Array.fromAsync(store.history(session));
  const { interruption } = reading;
  const verified = await store.verify(session);
  const children = await childrenOf(store, session);
  const requests = { checked: 0, violations: [] as string[] };
  const processes = processesIn(records);
  for (const id of [session, ...children.map((child) => child.id)]) {
    const { messages } = id === session ? reading : await store.read<ModelMessage>(id);
    // A sub-agent without a prompt has nothing to send.
    if (messages.length === 0) continue;
    requests.checked += 1;
    requests.violations.push(...(await violationsIn(messages)));
    if (id !== session) processes.push(...processesIn(await Array.fromAsync(store.history(id))));
  }
  return {
    records,
    interruption,
    calls: accountElsewhere(reading).calls.map((call) => {
      const pid = reading.calls.find(({ id }) => id === call.id)?.process?.pid;
      return {
        what: callWords(call, 60),
        words: call.words,
        effect: call.effect,
        ...(pid === undefined ? {} : { pid }),
      };
    }),
    answered: answeredBeside(interruption, records),
    epochs: records.filter(({ kind }) => kind === "epoch").length,
    // A torn end is not damage: it was never acknowledged.
    damage: recoveryLines({ ...verified, cutBytes: 0 }),
    tornBytes: verified.cutBytes,
    requests,
    agents: {
      sessions: children.length,
      unfinished: children.filter(({ status }) => status !== "idle").length,
    },
    processes,
  };
}

async function childrenOf(store: Store, parent: string): Promise<{ readonly id: string; readonly status: string }[]> {
  return (await store.list({ parent, empty: true })).sessions;
}

/** Checks the messages as a request: if the last one is an answer, a new prompt follows it. */
async function violationsIn(messages: readonly ModelMessage[]): Promise<string[]> {
  const { validateAiSdk } = await import("@holdfast/testkit");
  const isAnswered = messages.at(-1)?.role === "assistant";
  const request = isAnswered ? [...messages, { role: "user", content: "And now?" }] : messages;
  return validateAiSdk(request).map(({ rule, at, why }) => `${rule} at ${at}: ${why}`);
}

/** Calls of the interrupted step that have their results. */
function answeredBeside(interruption: Interruption<unknown> | null, records: readonly JournalRecord[]): number {
  const messages = new Set(interruption?.calls.map(({ message }) => message));
  return records.filter((record) => record.kind === "tool.ended" && messages.has(record["message"] as string)).length;
}

function processesIn(records: readonly JournalRecord[]): ToolProcess[] {
  return records.flatMap(({ kind, pid, started, group }) =>
    kind === "tool.process" && typeof pid === "number" && typeof started === "string"
      ? [{ pid, started, ...(group === true ? { group: true as const } : {}) }]
      : [],
  );
}
