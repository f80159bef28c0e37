import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type AnthropicMessage, type JournalRecord, openStore, type Store } from "holdfast";
import type { WorkerOrders, WorkerSaid } from "./fleet-worker.ts";

const PROGRAM = join(import.meta.dirname, "fleet-worker.ts");
/** Enough for the store and its sessions, and soon used up. */
const DESCRIPTORS = 200;

/** A number below `limit`, from a seed. */
export function dice(seed: number): (limit: number) => number {
  let state = seed >>> 0 || 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return state % limit;
  };
}

export class FleetWorker implements Disposable {
  readonly said: WorkerSaid[] = [];
  readonly child: ChildProcess;
  readonly closed: Promise<unknown>;
  #stderr = "";

  constructor(orders: WorkerOrders, env: NodeJS.ProcessEnv = process.env) {
    const node = [process.execPath, "--conditions=holdfast-source", PROGRAM, JSON.stringify(orders)];
    const [program, ...args] = orders.starves
      ? ["sh", "-c", `ulimit -n ${DESCRIPTORS}; exec "$@"`, "sh", ...node]
      : node;
    this.child = spawn(program!, args, { stdio: ["ignore", "pipe", "pipe"], env });
    this.closed = once(this.child, "close");
    this.child.stderr!.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    createInterface({ input: this.child.stdout! }).on("line", (line) => this.said.push(JSON.parse(line) as WorkerSaid));
  }

  /** Until it has said so much. */
  async hasSaid(count: number): Promise<void> {
    while (this.said.length < count && this.isAlive) await new Promise((resolve) => setTimeout(resolve, 2));
    if (!this.isAlive) throw new Error(`a worker ended by itself: ${this.#stderr}`);
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (!this.isAlive) throw new Error(`a worker ended by itself: ${this.#stderr}`);
    this.child.kill(signal);
    await this.closed;
    if (signal === "SIGTERM" && this.child.exitCode !== 0) throw new Error(`a worker failed: ${this.#stderr}`);
  }

  [Symbol.dispose](): void {
    this.child.kill("SIGKILL");
  }
}

/** A session whose program was shut down in the middle of its turn. */
export async function interrupted(store: Store, handOver: boolean): Promise<string> {
  const session = await store.create<AnthropicMessage>({ dialect: "anthropic" });
  await session.startTurn({ role: "user", content: "Do all steps." });
  await session.close({ handOver });
  return session.id;
}

export async function unfinished(store: Store): Promise<number> {
  const { sessions } = await store.list({ limit: 1000 });
  return sessions.filter(({ status }) => status !== "idle").length;
}

/** What is wrong with the sessions after all that. Each turn is finished once, and nothing unsafe ran twice. */
export async function judge(folder: string, ids: readonly string[], steps: number): Promise<string[]> {
  await using store = await openStore(folder);
  const faults: string[] = [];
  const runs = new Map<string, string[]>();
  for (const line of readFileSync(`${folder}.effects`, "utf8").trim().split("\n")) {
    const [call = "", isSafe, life = ""] = line.split(" ");
    if (isSafe === "false") runs.set(call, [...(runs.get(call) ?? []), life]);
  }
  for (const [call, lives] of runs)
    if (lives.length > 1) faults.push(`${call} must run once, and ran in ${lives.join(", ")}`);
  for (const id of ids) {
    const records: JournalRecord[] = await Array.fromAsync(store.history(id));
    const completed = records.filter(({ kind, outcome }) => kind === "turn.ended" && outcome === "completed");
    if (completed.length !== 1) faults.push(`${id}: its turn was finished ${completed.length} times`);
    const { messages } = await store.read<AnthropicMessage>(id);
    const answers = messages.filter(({ role }) => role === "assistant").length;
    if (answers < steps + 1) faults.push(`${id}: ${answers} answers instead of ${steps + 1}`);
    const { damaged, missing } = await store.verify(id);
    if (damaged.length + missing.length > 0) faults.push(`${id}: ${JSON.stringify({ damaged, missing })}`);
  }
  return faults;
}
