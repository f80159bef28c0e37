import type { NewRecord } from "holdfast/store";
import { listRecords, type NewItem } from "./list-records.ts";
import type { CheckpointRecord, ListRecord, StoredValue, WritesRecord } from "./records.ts";
import { type SavedCheckpoint, ThreadState } from "./state.ts";
import { transcriptRecords } from "./transcript.ts";

/** The records of an epoch with the newest checkpoints of each namespace, and those that they depend on. */
export function prunedRecords(
  state: ThreadState,
  keep: number,
  attributes: NewRecord,
): { readonly records: NewRecord[]; readonly removed: number } {
  const all = state.namespaces().flatMap((ns) => state.checkpoints(ns));
  const kept = new Set<SavedCheckpoint>();
  for (const ns of state.namespaces()) {
    for (const checkpoint of state.checkpoints(ns).slice(-keep)) keepWithSeeds(state, checkpoint, kept);
  }
  const epoch = {
    kind: "epoch",
    reason: "compaction",
    carried: 0,
    checkpoint: {
      dialect: attributes["dialect"],
      intents: false,
      turns: 0,
      started: [],
      queue: [],
      notes: {},
      usage: {},
      usageByTurn: [],
    },
  };
  const lists = new ListCopier(state);
  const records = all
    .filter((checkpoint) => kept.has(checkpoint))
    .flatMap((checkpoint): NewRecord[] => {
      const { ns, id, parent, values } = checkpoint;
      const writes = state.writes(ns, id).map(({ task, index, channel, value }): WritesRecord => {
        return { kind: "graph.writes", ns, id, task, writes: [[index, channel, value]] };
      });
      for (const value of values.values()) lists.copy(value);
      for (const { value } of state.writes(ns, id)) lists.copy(value);
      const before = parent === undefined ? undefined : state.checkpoint(ns, parent);
      return [...lists.take(), checkpointRecord(checkpoint, before && kept.has(before) ? before : null), ...writes];
    });
  const pruned = new ThreadState();
  for (const record of records) pruned.add(record);
  const latest = pruned.latest("");
  const shown = latest ? transcriptRecords(pruned, latest.id) : [];
  return { records: [epoch, attributes, ...records, ...shown], removed: all.length - kept.size };
}

/** The value of a delta channel is its last snapshot and the writes since: the checkpoints that have those are kept. */
function keepWithSeeds(state: ThreadState, checkpoint: SavedCheckpoint, kept: Set<SavedCheckpoint>): void {
  kept.add(checkpoint);
  for (const channel of checkpoint.delta) {
    let ancestor: SavedCheckpoint | undefined = checkpoint;
    while (ancestor && !ancestor.values.has(channel)) {
      ancestor = ancestor.parent === undefined ? undefined : state.checkpoint(checkpoint.ns, ancestor.parent);
      if (ancestor) kept.add(ancestor);
    }
  }
}

function checkpointRecord(saved: SavedCheckpoint, parent: SavedCheckpoint | null): CheckpointRecord {
  const { values, delta, parent: parentId, broken: _, ...rest } = saved;
  const isSame = ([channel, value]: [string, StoredValue]): boolean => parent?.values.get(channel) === value;
  const same = [...values].filter(isSame).map(([channel]) => channel);
  return {
    kind: "graph.checkpoint",
    ...rest,
    ...(parentId === undefined ? {} : { parent: parentId }),
    values: Object.fromEntries([...values].filter((entry) => !isSame(entry))),
    ...(same.length > 0 ? { same } : {}),
    ...(delta.length > 0 ? { delta } : {}),
  };
}

/** Copies lists under their own numbers, as far as they are needed, and each item once. */
class ListCopier {
  readonly #state: ThreadState;
  readonly #lengths = new Map<number, number>();
  readonly #places = new Map<StoredValue, readonly [list: number, index: number]>();
  #records: ListRecord[] = [];

  constructor(state: ThreadState) {
    this.#state = state;
  }

  copy(value: StoredValue): void {
    if ("o" in value) for (const member of Object.values(value.o)) this.copy(member);
    if (!("l" in value)) return;
    const [list, length] = value.l;
    const from = this.#lengths.get(list);
    if (from !== undefined && from >= length) return;
    const items = (this.#state.list(list) ?? []).slice(from ?? 0, length);
    // The lists inside come first.
    for (const item of items) this.copy(item);
    const added = items.map((item): NewItem => ({ value: item, place: this.#places.get(item) ?? null }));
    this.#records.push(...listRecords(list, from ?? 0, added));
    this.#lengths.set(list, length);
    items.forEach((item, index) => {
      if (!this.#places.has(item)) this.#places.set(item, [list, (from ?? 0) + index]);
    });
  }

  /** The records since the last call. */
  take(): ListRecord[] {
    const taken = this.#records;
    this.#records = [];
    return taken;
  }
}
