import { dueInLists } from "holdfast/internal";
import type { DueQuery, Listed } from "holdfast/store";
import type { OpenInMemory } from "../memory-subject.ts";
import { type BrokenStore, stores } from "./wrap.ts";

type Find = (query: DueQuery) => Promise<readonly Listed[]>;

/** Stores that find work by themselves, and wrongly. */
function finds(change: (query: DueQuery, find: Find) => Promise<readonly Listed[]>): OpenInMemory {
  return stores((store) => ({ due: (query) => change(query, (given) => dueInLists(store, given)) }));
}

function chosen(fits: (row: { readonly attempts?: number; readonly wakeAt?: string }) => boolean): OpenInMemory {
  return finds(async (query, find) => (await find(query)).filter(({ summary }) => fits(summary as object)));
}

/** Faults in finding what a worker can continue. */
export const brokenWorking: readonly BrokenStore[] = [
  { name: "finds no work", open: chosen(() => false) },
  { name: "finds the newest work first", open: finds(async (query, find) => (await find(query)).toReversed()) },
  { name: "finds nothing that is to continue later", open: chosen(({ wakeAt }) => wakeAt === undefined) },
  {
    name: "finds work of all programs and folders",
    open: finds((query, find) => find({ ...query, where: { parentSession: null } })),
  },
  { name: "finds the work of a parent's turn", open: finds((query, find) => find({ ...query, where: {} })) },
  { name: "finds nothing that was tried before", open: chosen(({ attempts }) => attempts === undefined) },
];
