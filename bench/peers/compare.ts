import * as fs from "node:fs";
import { join } from "node:path";
import type { Machine } from "../machine.ts";
import { median } from "../statistics.ts";
import { TooSlow, WorkerClient } from "./client.ts";
import { type Cell, type Comparison, type PeerResult, type Plan, turnsAt } from "./comparison.ts";
import { install } from "./install.ts";
import type { Read, Request } from "./protocol.ts";
import { type Contender, roster } from "./roster.ts";

export interface Run {
  readonly plan: Plan;
  readonly quick: boolean;
  readonly machine: Machine;
  /** Empty, on the disk that is measured; removed by the caller. */
  readonly folder: string;
  readonly cache: string;
  readonly keys: readonly string[];
  readonly say: (line: string) => void;
}

/** A contender during the run. */
interface Entrant {
  readonly contender: Contender;
  readonly cache: string;
  readonly result: {
    -readonly [K in keyof PeerResult]: PeerResult[K];
  };
}

/** Time for what has no budget of its own, such as making the sessions of a list. */
const PATIENCE_MS = 10 * 60_000;

/** All contenders on the same work, in turn, one at a time. */
export async function compare(run: Run): Promise<Comparison> {
  const { machine, plan, quick } = run;
  const measured = new Date().toISOString();
  const entrants: Entrant[] = [];
  for (const contender of roster.filter(({ key }) => run.keys.length === 0 || run.keys.includes(key)))
    entrants.push(await enter(run, contender));
  const able = entrants.filter(({ result }) => result.errors.length === 0);
  await grow(run, able);
  for (const messages of plan.resumes) await resume(run, able, messages);
  await list(run, able);
  return { measured, quick, machine, plan, peers: entrants.map(({ result }) => result) };
}

async function enter(run: Run, contender: Contender): Promise<Entrant> {
  const { key, name, survives, packages, overrides, driven, readsLike = null } = contender;
  const versions = { ...packages, ...overrides };
  const none: Cell = { none: "not measured" };
  const byAge = (): Record<number, Cell> => Object.fromEntries(run.plan.ages.map((age) => [age, none]));
  const bySize = (): Record<number, Cell> => Object.fromEntries(run.plan.resumes.map((size) => [size, none]));
  const result: Entrant["result"] = {
    ...{ key, name, survives, versions, driven, readsLike },
    ...{ append: byAge(), bytes: byAge(), resumeMs: bySize(), resumeMB: bySize(), listMs: none, errors: [] },
  };
  let cache = "";
  try {
    if (Object.keys(packages).length > 0) cache = await install(run.cache, contender, run.say);
  } catch (error) {
    fail(run, result, "install", error);
  }
  return { contender, cache, result };
}

/** Lets a session of each grow from age to age, and measures all of them in turn at each. */
async function grow(run: Run, entrants: readonly Entrant[]): Promise<void> {
  const { plan } = run;
  const growing = new Map<Entrant, WorkerClient>();
  const folders: string[] = [];
  try {
    for (const entrant of entrants) {
      const folder = makeFolder(run, entrant);
      folders.push(folder);
      growing.set(entrant, start(run, entrant, folder));
      await attempt(run, entrant, growing, { task: "begin", warmUpTurns: 200, warmUpMs: plan.roundMs });
    }
    for (const age of plan.ages) {
      for (const [entrant] of growing) {
        run.say(`${entrant.contender.name}: grows to ${age.toLocaleString("en")} messages`);
        const request = { task: "grow", to: age, budgetMs: plan.growMs } as const;
        const grown = await attempt(run, entrant, growing, request);
        if (!grown || grown.messages >= age) continue;
        // Also of the ages that come after this one.
        const at = grown.messages.toLocaleString("en");
        const none = `stopped at ${at} messages: more than ${Math.round(plan.growMs / 1000)} s to the next age`;
        for (const later of plan.ages.filter((other) => other >= age))
          entrant.result.append = { ...entrant.result.append, [later]: { none } };
        await drop(entrant, growing);
      }
      await measureAt(run, age, growing);
    }
  } finally {
    for (const worker of growing.values()) await worker.stop();
    // Gigabytes, of those that store everything again and again.
    for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function measureAt(run: Run, age: number, growing: Map<Entrant, WorkerClient>): Promise<void> {
  const { rounds, roundMs } = run.plan;
  const turns = turnsAt(age, run.plan);
  const found = new Map<Entrant, { us: number[]; bytes: number[] }>();
  for (let round = 0; round < rounds; round++) {
    run.say(`at ${age.toLocaleString("en")} messages, round ${round + 1} of ${rounds}`);
    for (const entrant of rotate([...growing.keys()], round)) {
      const answer = await attempt(run, entrant, growing, { task: "measure", turns, forMs: roundMs });
      if (!answer) continue;
      const own = found.get(entrant) ?? { us: [], bytes: [] };
      own.us.push(median(answer.us));
      if (answer.bytesPerByte !== null) own.bytes.push(answer.bytesPerByte);
      found.set(entrant, own);
    }
  }
  for (const [{ result }, { us, bytes }] of found) {
    result.append = { ...result.append, [age]: { rounds: us } };
    const none = { none: "only Linux counts them" };
    result.bytes = { ...result.bytes, [age]: bytes.length > 0 ? { rounds: bytes } : none };
  }
}

async function resume(run: Run, entrants: readonly Entrant[], messages: number): Promise<void> {
  const shown = messages.toLocaleString("en");
  const readers: Reader[] = [];
  for (const entrant of entrants) {
    if (entrant.contender.readsLike) continue;
    run.say(`${entrant.contender.name}: a session of ${shown} messages`);
    const folder = makeFolder(run, entrant);
    const made = await once(run, entrant, folder, { task: "fill", messages }, PATIENCE_MS);
    if (made) readers.push({ entrant, folder, request: { task: "resume", id: made.id, messages } });
  }
  for (const [{ result }, reads] of await readInTurn(run, readers, `resume ${shown}`)) {
    result.resumeMs = { ...result.resumeMs, [messages]: cellOf(run, reads, "ms") };
    result.resumeMB = { ...result.resumeMB, [messages]: cellOf(run, reads, "peakMB") };
  }
  for (const { folder } of readers) fs.rmSync(folder, { recursive: true, force: true });
}

async function list(run: Run, entrants: readonly Entrant[]): Promise<void> {
  const count = run.plan.sessions;
  const readers: Reader[] = [];
  for (const entrant of entrants) {
    const { readsLike, noList, name } = entrant.contender;
    if (noList) entrant.result.listMs = { none: noList };
    if (readsLike || noList) continue;
    run.say(`${name}: ${count.toLocaleString("en")} sessions`);
    const folder = makeFolder(run, entrant);
    if (await once(run, entrant, folder, { task: "sessions", count }, PATIENCE_MS))
      readers.push({ entrant, folder, request: { task: "list", count } });
  }
  for (const [{ result }, reads] of await readInTurn(run, readers, "list")) result.listMs = cellOf(run, reads, "ms");
  for (const { folder } of readers) fs.rmSync(folder, { recursive: true, force: true });
}

interface Reader {
  readonly entrant: Entrant;
  readonly folder: string;
  readonly request: Extract<Request, { task: "resume" | "list" }>;
}

/** One after the other, each time in a new process. `null` stands for a read that was stopped. */
async function readInTurn(
  run: Run,
  readers: readonly Reader[],
  what: string,
): Promise<Map<Entrant, readonly (Read | null)[]>> {
  const { readRounds, readMs, onceMs } = run.plan;
  const found = new Map<Entrant, (Read | null)[]>();
  const done = new Set<Reader>();
  for (let round = 0; round < readRounds; round++) {
    run.say(`${what}, round ${round + 1} of ${readRounds}`);
    for (const reader of rotate(readers, round)) {
      if (done.has(reader)) continue;
      const { entrant, folder, request } = reader;
      const answer = await once(run, entrant, folder, request, readMs);
      if (answer === undefined || answer === null || (round === 0 && answer.ms > onceMs)) done.add(reader);
      if (answer !== undefined) found.set(entrant, [...(found.get(entrant) ?? []), answer]);
    }
  }
  return found;
}

function cellOf(run: Run, reads: readonly (Read | null)[], of: "ms" | "peakMB"): Cell {
  const rounds = reads.flatMap((read) => (read ? [read[of]] : []));
  if (rounds.length === reads.length) return { rounds };
  const none = `stopped after ${Math.round(run.plan.readMs / 1000)} s`;
  return of === "ms" ? { over: run.plan.readMs } : { none };
}

/** Asks a new process once. `null`: it took too long. `undefined`: it failed, which the result says. */
async function once<R extends Extract<Request, { task: "fill" | "sessions" | "resume" | "list" }>>(
  run: Run,
  entrant: Entrant,
  folder: string,
  request: R,
  timeoutMs: number,
) {
  const worker = start(run, entrant, folder);
  try {
    return await worker.ask(request, timeoutMs);
  } catch (error) {
    if (error instanceof TooSlow && (request.task === "resume" || request.task === "list")) return null;
    fail(run, entrant.result, request.task, error);
    return undefined;
  } finally {
    await worker.stop();
  }
}

/** Asks a growing session's process. If it fails, the contender is out of this part. */
async function attempt<R extends Request>(run: Run, entrant: Entrant, growing: Map<Entrant, WorkerClient>, request: R) {
  try {
    return await growing.get(entrant)!.ask(request, PATIENCE_MS);
  } catch (error) {
    fail(run, entrant.result, request.task, error);
    await drop(entrant, growing);
    return null;
  }
}

async function drop(entrant: Entrant, growing: Map<Entrant, WorkerClient>): Promise<void> {
  await growing.get(entrant)?.stop();
  growing.delete(entrant);
}

function start(run: Run, entrant: Entrant, folder: string): WorkerClient {
  const home = join(run.folder, "home");
  fs.mkdirSync(home, { recursive: true });
  return new WorkerClient({ key: entrant.contender.key, cache: entrant.cache, folder, home });
}

function makeFolder(run: Run, { contender }: Entrant): string {
  return fs.mkdtempSync(join(run.folder, `${contender.key}-`));
}

function fail(run: Run, result: Entrant["result"], what: string, error: unknown): void {
  const words = `${what}: ${error instanceof Error ? error.message : String(error)}`;
  run.say(`${result.name} FAILED: ${words}`);
  result.errors = [...result.errors, words];
}

/** Which one goes first changes from round to round. */
function rotate<T>(all: readonly T[], by: number): T[] {
  const from = all.length === 0 ? 0 : by % all.length;
  return [...all.slice(from), ...all.slice(0, from)];
}
