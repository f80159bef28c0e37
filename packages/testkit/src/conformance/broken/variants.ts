import { HoldfastError } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { type BrokenStore, journals, perMemory, stores } from "./wrap.ts";

const packed = perMemory(() => new Map<string, number>());

/** Packs nothing, but follows the contract of packing. */
const packing = stores((store, memory) => ({
  capabilities: { ...store.capabilities, pack: true },
  async pack(id) {
    const { journal } = await store.open(id);
    await journal.close();
    const session = memory.sessions.get(id)!;
    const old = session.segments.length - 1;
    const segments = old - (packed(memory).get(id) ?? 0);
    packed(memory).set(id, old);
    const bytesBefore = session.lines.slice(0, session.epochAt).reduce((sum, line) => sum + line.length, 0);
    return { segments, bytesBefore, bytesAfter: Math.ceil(bytesBefore / 2) };
  },
}));

function unsupported(call: string): never {
  throw new HoldfastError("NOT_SUPPORTED", `No ${call} here.`);
}

/** Without appendSync and flushSync. */
const socket = journals(
  () => ({ appendSync: () => unsupported("appendSync"), flushSync: () => unsupported("flushSync") }),
  stores((store) => ({ capabilities: { ...store.capabilities, sync: false } })),
);

/** Correct stores with other capabilities than memory has, to show that every case can pass. */
export const goodVariants: readonly BrokenStore[] = [
  { name: "memory that can be packed", capabilities: { pack: true }, open: packing },
  { name: "memory without synchronous appends", capabilities: { sync: false }, open: socket },
];

/** Broken ones, to show that every case can fail. */
export const brokenVariants: readonly BrokenStore[] = [
  {
    name: "loses what it packs",
    capabilities: { pack: true },
    open: stores(
      (store, memory) => ({
        async *history(id, from = 1) {
          const lost = packed(memory).has(id) ? (memory.sessions.get(id)?.epochAt ?? 0) : 0;
          yield* store.history(id, Math.max(from, lost + 1));
        },
      }),
      packing,
    ),
  },
  {
    name: "packs under the writer's feet",
    capabilities: { pack: true },
    open: stores(
      (store, memory) => ({
        async pack(id) {
          memory.leases.delete(id);
          return store.pack(id);
        },
      }),
      packing,
    ),
  },
  {
    name: "says that it packed, and cannot",
    open: stores((): Partial<JournalStore> => ({ pack: async () => ({ segments: 0, bytesBefore: 0, bytesAfter: 0 }) })),
  },
];
