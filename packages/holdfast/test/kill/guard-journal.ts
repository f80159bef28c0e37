import { type JournalRecord, newId, openStore } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { expect } from "vitest";
import { place } from "../place.ts";
import type { Job, Said } from "./guard-agent.ts";
import { agentCommand, Process } from "./guard-process.ts";

type Agent = { readonly job: Job; readonly process: Process } & AsyncDisposable;

/** An agent at work in a folder of its own, which goes with it. */
export function startAgent(host: Job["host"], more: Partial<Job> = {}): Agent {
  const { job, [Symbol.dispose]: remove } = newJob(host, more);
  const process = new Process(...agentCommand(job));
  return {
    job,
    process,
    async [Symbol.asyncDispose]() {
      await process[Symbol.asyncDispose]();
      remove();
    },
  };
}

export function newJob(host: Job["host"], more: Partial<Job> = {}): { readonly job: Job } & Disposable {
  const folder = place();
  const job = { folder: `${folder.path}/store`, ids: [newId()], host, ...more };
  return { job, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

export async function recordsOf(job: Job, id: string): Promise<readonly JournalRecord[]> {
  const session = (job.manner ?? "sync") === "sync" ? await idOf(job, id) : id;
  await using store = await openFolderStore(job.folder);
  return (await store.read(session)).records;
}

/** What resume will say of the session. */
export async function interruptionOf(job: Job, id: string): Promise<unknown> {
  const session = await idOf(job, id);
  await using store = await openStore(job.folder);
  return (await store.read(session)).interruption?.how;
}

export async function idOf(job: Job, id: string): Promise<string> {
  await using store = await openStore(job.folder);
  return (await store.list({ labels: { id } })).sessions[0]!.id;
}

/** The `signal` records of a session: what each says. */
export function signalsOf(records: readonly JournalRecord[]): { signal: unknown; error?: unknown }[] {
  const found = records.filter(({ kind }) => kind === "signal");
  return found.map(({ signal, error }) => (error === undefined ? { signal } : { signal, error }));
}

/** acknowledged ⊆ recovered, in order and without a gap. Answers how many came back. */
export function expectNothingLost(said: readonly Said[], id: string, records: readonly JournalRecord[]): number {
  const acknowledged = said.flatMap((one) => (one.say === "ack" && one.id === id ? [one.n] : []));
  const recovered = records.flatMap(({ kind, n, message }) => {
    if (kind !== "message") return [];
    const { content } = (message ?? { content: n }) as { content: string };
    return content === "work" ? [] : [Number(content)];
  });
  expect(acknowledged.length).toBeGreaterThanOrEqual(3);
  expect(recovered.slice(0, acknowledged.length)).toEqual(acknowledged);
  expect(recovered).toEqual(recovered.map((_, i) => i + 1));
  return recovered.length;
}
