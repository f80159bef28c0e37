import { parentPort, workerData } from "node:worker_threads";
import { isHoldfastError } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { Journal } from "holdfast/store";

/**
 * A writer in a thread of its own that stands still before one of its calls to the disk, in the middle of whatever it
 * does, until it is told to go on. Its locks keep nobody out: what happens then is the fence's business alone.
 */

export interface Job {
  readonly root: string;
  readonly id: string;
  readonly durability: "power" | "process";
  /** Whether the sync of a lone append happens inside the call, as on a fast disk. */
  readonly syncsInCall: boolean;
  readonly work: Work;
  /** Counted from the beginning of the work. */
  readonly pauseAt: number;
  /** [0] is 1 while it stands still; it goes on when [1] is 1. */
  readonly gate: SharedArrayBuffer;
}

export type Work = keyof typeof works;

export type Said =
  /** Before it begins: what it acknowledged on the way there. */
  | { readonly e: "acknowledged"; readonly n: string }
  | { readonly e: "done"; readonly steps: number; readonly error: string | null };

type During = (journal: Journal, job: Job) => Promise<unknown>;

/** What is done before the calls are counted, and what is done while they are. */
const works = {
  append: { before: create, during: (journal: Journal) => appendAll(journal, ["a1", "a2"]) },
  "append at once": {
    before: create,
    during: (journal: Journal) => Promise.all(["a1", "a2"].map((n) => put(journal, n))),
  },
  "append a unit": { before: create, during: (journal: Journal) => putUnit(journal, ["a1", "a2", "a3"]) },
  "append synchronously": { before: create, during: (journal: Journal) => putSync(journal, "a1") },
  "begin an epoch": { before: create, during: beginEpoch },
  "begin a segment": { before: createSmall, during: (journal: Journal) => appendAll(journal, ["a1", "a2"]) },
  close: { before: create, during: (journal: Journal) => journal.close() },
  "open after a kill": { before: nothing, during: open },
  "open and append after a kill": { before: nothing, during: openAndAppend },
  "go on after a kill": { before: open, during: (journal: Journal) => appendAll(journal, ["a1", "a2"]) },
  "open after a close": { before: nothing, during: open },
  "go on after a close": { before: open, during: (journal: Journal) => appendAll(journal, ["a1", "a2"]) },
  "close after a look": { before: open, during: (journal: Journal) => journal.close() },
} satisfies Record<string, { before: (job: Job) => Promise<Journal | null>; during: During }>;

export const names = Object.keys(works) as Work[];

const say = (said: Said): void => parentPort?.postMessage(said);
const tell = (n: string): void => say({ e: "acknowledged", n });

async function put(journal: Journal, n: string): Promise<void> {
  await journal.append({ kind: "message", n });
  tell(n);
}
async function appendAll(journal: Journal, all: readonly string[]): Promise<void> {
  for (const n of all) await put(journal, n);
}
async function putUnit(journal: Journal, all: readonly string[]): Promise<void> {
  await journal.append(all.map((n) => ({ kind: "message", n })));
  for (const n of all) tell(n);
}
async function putSync(journal: Journal, n: string): Promise<void> {
  journal.appendSync({ kind: "message", n });
  tell(n);
}
async function beginEpoch(journal: Journal): Promise<void> {
  await journal.epoch(() => [
    { kind: "epoch", reason: "compaction" },
    { kind: "message", n: "e" },
  ]);
  tell("e");
  await put(journal, "a1");
}

async function nothing(): Promise<null> {
  return null;
}
async function create(job: Job, segmentBytesMax?: number): Promise<Journal> {
  const store = await openFolderStore(job.root, { ...options(job), ...(segmentBytesMax ? { segmentBytesMax } : {}) });
  const journal = await store.create(job.id, [{ kind: "session" }]);
  await appendAll(journal, ["a0"]);
  return journal;
}
function createSmall(job: Job): Promise<Journal> {
  return create(job, 300);
}
async function open(first: Job | Journal, second?: Job): Promise<Journal> {
  const job = second ?? (first as Job);
  const store = await openFolderStore(job.root, options(job));
  return (await store.open(job.id)).journal;
}
async function openAndAppend(_: Journal, job: Job): Promise<void> {
  await appendAll(await open(job), ["a1", "a2"]);
}

const options = (job: Job) => ({ disk: pausing, durability: job.durability, catalogue: false as const });

let counting = false;
let steps = 0;
let pauseAt = -1;
let syncsInCall = false;
let gate = new Int32Array(new SharedArrayBuffer(8));

function step(): void {
  if (!counting || steps++ !== pauseAt) return;
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
  Atomics.wait(gate, 1, 0);
}

/** Every call is a step, and a file's calls too. */
function stepping<T extends object>(target: T): T {
  return new Proxy(target, {
    get(of, name) {
      const member = Reflect.get(of, name) as unknown;
      if (typeof member !== "function") return member;
      return (...parameters: unknown[]) => {
        step();
        return (member as (...all: unknown[]) => unknown).apply(of, parameters);
      };
    },
  });
}

export const withoutLocks: Pick<Disk, "lock" | "isLocked" | "hardLock"> = {
  lock: () => ({ release: () => {} }),
  isLocked: () => false,
  hardLock: () => "none" as const,
};

const pausing: Disk = {
  ...stepping({ ...nodeDisk }),
  ...withoutLocks,
  open: (path, mode): DiskFile => {
    step();
    const file = nodeDisk.open(path, mode);
    const syncIfFast = (): boolean => {
      if (syncsInCall) file.syncNow();
      return syncsInCall;
    };
    return stepping(Object.assign(file, { syncIfFast }));
  },
};
for (const name of ["stat", "list", "makeFolder", "rename", "link", "remove", "syncFolder"] as const) {
  const call = nodeDisk[name] as (...all: string[]) => unknown;
  Object.assign(pausing, {
    [name]: (...all: string[]) => {
      step();
      return call(...all);
    },
  });
}

async function run(job: Job): Promise<void> {
  steps = 0;
  pauseAt = job.pauseAt;
  syncsInCall = job.syncsInCall;
  gate = new Int32Array(job.gate);
  let error: string | null = null;
  try {
    const { before, during } = works[job.work];
    const journal = await before(job);
    counting = true;
    await (during as During)(journal as Journal, job);
  } catch (caught) {
    error = isHoldfastError(caught) ? caught.code : String(caught);
  } finally {
    counting = false;
  }
  // Nobody waits any more, whether it got to that step or not.
  say({ e: "done", steps, error });
}

if (parentPort && workerData === "paused-writer") parentPort.on("message", (job: Job) => void run(job));
