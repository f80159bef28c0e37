import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { JournalStore } from "holdfast/store";

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));

/** What a worker says (`worker.ts`). */
export interface Said {
  readonly id: string;
  readonly by: string;
  readonly opened?: number;
  readonly attempt?: number;
  readonly count?: number;
  readonly ack?: number;
  readonly seq?: number;
  readonly soft?: boolean;
  readonly failed?: number;
  readonly code?: string;
  readonly refused?: string;
  readonly lost?: string;
  /** A tool runs (`fleet-worker.ts`): its call, and whether it may run twice. */
  readonly ran?: string;
  readonly isSafe?: boolean;
  readonly finished?: string;
}

export class Worker {
  readonly said: Said[] = [];
  readonly child: ChildProcess;
  #stderr = "";
  readonly #waiting = new Set<() => void>();

  constructor(url: string, life: string, ids: readonly string[], options: object = {}, program = WORKER) {
    const args = ["--conditions=holdfast-source", program, url, JSON.stringify(options), life, ...ids];
    this.child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    this.child.stderr!.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      this.said.push(JSON.parse(line) as Said);
      for (const wake of this.#waiting) wake();
    });
    this.child.on("close", () => {
      for (const wake of this.#waiting) wake();
    });
  }

  /** Until it has said such a thing, from `from` on. */
  async says(wanted: (said: Said) => boolean, from = 0): Promise<Said> {
    for (let next = from; ; ) {
      for (; next < this.said.length; next++) if (wanted(this.said[next]!)) return this.said[next]!;
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`the worker ended by itself: ${this.#stderr}`);
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
      }).finally(() => this.#waiting.clear());
    }
  }

  /** Some append was acknowledged. */
  get isAtWork(): boolean {
    return this.said.some(({ ack }) => ack !== undefined);
  }

  /** Until one more append is acknowledged. */
  async works(): Promise<void> {
    await this.says(({ ack }) => ack !== undefined, this.said.length);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Whatever became of it. */
  [Symbol.dispose](): void {
    this.child.kill("SIGKILL");
  }

  /** All that it said is there then. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null)
      throw new Error(`the worker ended by itself: ${this.#stderr}`);
    const closed = once(this.child, "close");
    this.child.kill("SIGKILL");
    await closed;
  }
}

interface Note {
  readonly by: string;
  readonly n: number;
  readonly part: number;
}

/**
 * The oracle: acknowledged (with `power`) ⊆ recovered ⊆ attempted, in order, each once and whole, an acknowledged one
 * at its seq; and no record of a writer after one of its replacement. Returns what is wrong, and how much was looked
 * at.
 */
export async function judge(
  store: JournalStore,
  ids: readonly string[],
  said: readonly Said[],
): Promise<{
  readonly faults: string[];
  readonly acknowledged: number;
  readonly recovered: number;
  readonly softLost: number;
}> {
  const faults: string[] = [];
  let acknowledged = 0;
  let recovered = 0;
  let softLost = 0;
  for (const id of ids) {
    const of = said.filter((one) => one.id === id);
    const counts = new Map(of.flatMap(({ by, attempt, count }) => (attempt ? [[`${by}/${attempt}`, count!]] : [])));
    const found = new Map<string, { readonly seq: number; parts: number }>();
    const writers: string[] = [];
    let newest = 0;
    for await (const record of store.history(id)) {
      if (record.kind !== "note") continue;
      const { by, n, part } = record as unknown as Note;
      const name = `${by}/${n}`;
      if (writers.at(-1) !== by) {
        if (writers.includes(by)) faults.push(`${id}: ${name} stands after its replacement`);
        writers.push(by);
        newest = 0;
      }
      const known = found.get(name);
      if (part === 0) {
        if (known) faults.push(`${id}: ${name} stands twice`);
        if (n <= newest) faults.push(`${id}: ${name} stands after ${newest}`);
        if (!counts.has(name)) faults.push(`${id}: ${name} was never attempted`);
        newest = n;
        found.set(name, { seq: record.seq, parts: 1 });
      } else if (known?.parts !== part || record.seq !== known.seq + part)
        faults.push(`${id}: part ${part} of ${name} is out of place`);
      else known.parts++;
    }
    for (const [name, { parts }] of found)
      if (parts !== counts.get(name)) faults.push(`${id}: of ${name} only ${parts} parts stand`);
    for (const { by, ack, seq, soft } of of) {
      if (ack === undefined) continue;
      acknowledged++;
      // With `process` a crash of the server may take the end: nothing that is followed by something that stands.
      const isEnd =
        soft &&
        !of.some(
          (later) => later.by === by && later.ack !== undefined && later.ack > ack && found.has(`${by}/${later.ack}`),
        );
      if (isEnd && !found.has(`${by}/${ack}`)) {
        softLost++;
        continue;
      }
      if (found.get(`${by}/${ack}`)?.seq !== seq)
        faults.push(`${id}: ${by}/${ack} was acknowledged at ${seq} and is not there`);
    }
    recovered += found.size;
    const { damaged, missing } = await store.verify(id);
    if (damaged.length + missing.length > 0) faults.push(`${id}: ${JSON.stringify({ damaged, missing })}`);
  }
  return { faults, acknowledged, recovered, softLost };
}

/** Small and seeded: a failure is run again by its number. */
export function dice(seed: number): (sides: number) => number {
  let state = seed >>> 0 || 1;
  return (sides) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % sides;
  };
}
