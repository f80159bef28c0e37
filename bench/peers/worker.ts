import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bytesHandedOver, peakBytes, resetPeak } from "../kernel.ts";
import { median } from "../statistics.ts";
import type { Load, LoadStore, OpenStore, PeerStore, Writer } from "./contract.ts";
import { BRIDGE } from "./install.ts";
import type { Answers, Grown, Measured, Read, Request } from "./protocol.ts";
import { PER_TURN, Turns } from "./turns.ts";

/**
 * One contender in a process of its own: works when its parent asks, one request at a time, so that those of all
 * contenders interleave and no two work at once.
 */
const [key = "", cache = "", folder = ""] = process.argv.slice(2);

/** Imported when asked for: a peer's memory has no other peer's code in it. */
const stores: Record<string, () => Promise<LoadStore>> = {
  holdfast: async () => (await import("./stores/holdfast.ts")).loadHoldfast("process"),
  "holdfast-unsynced": async () => (await import("./stores/holdfast.ts")).loadHoldfast("process", true),
  "holdfast-power": async () => (await import("./stores/holdfast.ts")).loadHoldfast("power"),
  pi: async () => (await import("./stores/pi.ts")).loadPi,
  gemini: async () => (await import("./stores/gemini.ts")).loadGemini,
  "sqlite-normal": async () => (await import("./stores/sqlite.ts")).loadSqlite("NORMAL"),
  "sqlite-full": async () => (await import("./stores/sqlite.ts")).loadSqlite("FULL"),
  mastra: async () => (await import("./stores/mastra.ts")).loadMastra,
  langgraph: async () => (await import("./stores/langgraph.ts")).loadLangGraph,
  "langgraph-holdfast": async () => (await import("./stores/langgraph.ts")).loadHoldfastSaver,
  "whole-file": async () => (await import("./stores/whole-file.ts")).loadWholeFile,
};

let store: PeerStore | null = null;
let writer: Writer | null = null;
let stored = 0;
let made: Turns | null = null;

const tasks: { [T in keyof Answers]: (request: Extract<Request, { task: T }>) => Promise<Answers[T]> } = {
  begin: async ({ warmUpMs, warmUpTurns }) => {
    store = await (await load())(folder);
    writer = await store.create("warm-up");
    const start = performance.now();
    for (let i = 0; i < warmUpTurns && performance.now() - start < warmUpMs; i++) await writer.prepare(turns().at(i))();
    await writer.close();
    writer = await store.create("growing");
    return {};
  },
  grow: async ({ to, budgetMs }) => grow(to, budgetMs),
  measure: async ({ turns: count, forMs }) => measure(count, forMs),
  fill: async ({ messages }) => {
    const own = await openUntimed();
    try {
      if (own.fill) return { id: await own.fill(turns().upTo(messages)) };
      const filled = await own.create("filled");
      for (const turn of turns().upTo(messages)) await filled.prepare(turn)();
      await filled.close();
      return { id: filled.id };
    } finally {
      await own.close();
    }
  },
  sessions: async ({ count }) => {
    const own = await openUntimed();
    for (let i = 0; i < count; i++) {
      const session = await own.create(`Session ${i}: why does the test fail?`);
      await session.prepare(turns().at(i))();
      await session.close();
    }
    await own.close();
    return {};
  },
  resume: async ({ id, messages }) =>
    read(async (open) => {
      const found = await (await open()).resume(id);
      if (found.messages !== messages) throw new Error(`resumed with ${found.messages} of ${messages} messages`);
      return found.kept;
    }),
  list: async ({ count }) =>
    read(async (open) => {
      const listed = await (await open()).list!();
      if (listed !== count) throw new Error(`listed ${listed} of ${count} sessions`);
      return listed;
    }),
};

process.on("message", (request: Request) => {
  const run = tasks[request.task] as (request: Request) => Promise<object>;
  run(request).then(
    (answer) => process.send!({ answer }),
    (error: unknown) => process.send!({ error: error instanceof Error ? error.message : String(error) }),
  );
});

// No worker outlives its parent.
process.on("disconnect", () => process.exit());

/** For making what is read later: nothing is timed, so nothing has to be synced either. */
async function openUntimed(): Promise<PeerStore> {
  return (await load(key === "holdfast" ? "holdfast-unsynced" : key))(folder);
}

/** Only in processes that write: they would count as memory of those that read. */
function turns(): Turns {
  made ??= new Turns();
  return made;
}

async function load(name = key): Promise<OpenStore> {
  return (await stores[name]!())(importFrom(cache));
}

/** A module is resolved from where its importer is: the one that `install` put into the cache. */
function importFrom(folder: string): Load {
  return async (name) => ((await import(pathToFileURL(join(folder, BRIDGE)).href)) as { load: Load }).load(name);
}

/** Stores turns until there are `to` messages, or until it is clear that the time will not do. */
async function grow(to: number, budgetMs: number): Promise<Grown> {
  const start = performance.now();
  const last: number[] = [];
  if (writer!.grow) {
    const missing = Array.from({ length: (to - stored) / PER_TURN }, (_, i) => turns().at(stored / PER_TURN + i));
    await writer!.grow(missing);
    stored = to;
  }
  while (stored < to) {
    const store = writer!.prepare(turns().at(stored / PER_TURN));
    const begun = performance.now();
    await store();
    stored += PER_TURN;
    last[(stored / PER_TURN) % 10] = performance.now() - begun;
    const leftMs = budgetMs - (performance.now() - start);
    // No store here gets faster with age: what the last ten turns took is the least that the others will.
    const neededMs = last.length < 10 ? 0 : (median(last) * (to - stored)) / PER_TURN;
    if (leftMs <= 0 || neededMs > leftMs) break;
  }
  return { messages: stored, ms: performance.now() - start };
}

async function measure(count: number, forMs: number): Promise<Measured> {
  globalThis.gc?.();
  const us: number[] = [];
  let payload = 0;
  const before = bytesHandedOver();
  const start = performance.now();
  for (let i = 0; i < count && (i === 0 || performance.now() - start < forMs); i++) {
    const turn = turns().at(stored / PER_TURN);
    const store = writer!.prepare(turn);
    const begun = performance.now();
    await store();
    us.push(((performance.now() - begun) * 1000) / PER_TURN);
    payload += turn.bytes;
    stored += PER_TURN;
  }
  const after = bytesHandedOver();
  return { us, bytesPerByte: before === null || after === null ? null : (after - before) / payload };
}

/** In a process that has done nothing else: the time to open the store and read, and the most memory it had. */
async function read(work: (open: () => Promise<PeerStore>) => Promise<unknown>): Promise<Read> {
  const open = await load();
  globalThis.gc?.();
  resetPeak();
  const start = performance.now();
  const kept = await work(() => open(folder));
  const ms = performance.now() - start;
  return { ms, peakMB: peakBytes() / 1e6, alive: kept !== undefined };
}
