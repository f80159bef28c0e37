import type { JournalRecord } from "holdfast";
import type { NewRecord } from "holdfast/store";
import type { FoldedState } from "../state-journal/state-journal.ts";
import type { CheckpointRecord, ListRecord, StoredValue, WritesRecord } from "./records.ts";

export interface SavedCheckpoint {
  readonly ns: string;
  readonly id: string;
  readonly parent: string | undefined;
  readonly checkpoint: StoredValue;
  readonly metadata: StoredValue;
  readonly versions: Readonly<Record<string, number | string>>;
  readonly values: ReadonlyMap<string, StoredValue>;
  readonly delta: readonly string[];
  /** A channel whose value depends on a record that is not in the journal any more. */
  readonly broken: string | undefined;
}

export interface SavedWrite {
  readonly task: string;
  readonly index: number;
  readonly channel: string;
  readonly value: StoredValue;
}

/** A thread: what its records fold into. The same function folds what was read and what is being written. */
export class ThreadState implements FoldedState {
  readonly #lists = new Map<number, StoredValue[]>();
  /** In the order in which they were put. */
  readonly #checkpoints = new Map<string, Map<string, SavedCheckpoint>>();
  readonly #latest = new Map<string, SavedCheckpoint>();
  readonly #writes = new Map<string, Map<string, SavedWrite>>();
  /** The list that a channel held last. */
  readonly #slots = new Map<string, number>();
  readonly #shown = new WeakSet<StoredValue>();
  readonly #turn = { turns: 0, status: "ended" as "open" | "waiting" | "ended", resumes: 0 };
  #lastList = 0;
  /** The last record of the journal that is in here. */
  end: { readonly seq: number; readonly at: string } | null = null;

  /** Adds a record of the journal. */
  read(record: JournalRecord): void {
    this.add(record);
    this.end = { seq: record.seq, at: record.at };
  }

  add(record: NewRecord | JournalRecord): void {
    if (record.kind === "graph.list") this.#addList(record as unknown as ListRecord);
    else if (record.kind === "graph.checkpoint") this.#addCheckpoint(record as unknown as CheckpointRecord);
    else if (record.kind === "graph.writes") this.#addWrites(record as unknown as WritesRecord);
    else if (record.kind === "epoch") this.#clear(record);
    else if (record.kind === "message") this.#show(record);
    else if (record.kind.startsWith("turn.")) this.#turned(record);
  }

  /** What people are shown of the thread (transcript.ts). */
  get turn(): { readonly turns: number; readonly status: "open" | "waiting" | "ended"; readonly resumes: number } {
    return { ...this.#turn };
  }

  /** Is this message in what people are shown? */
  isShown(item: StoredValue): boolean {
    return this.#shown.has(item);
  }

  get nextList(): number {
    return this.#lastList + 1;
  }

  list(number: number): readonly StoredValue[] | undefined {
    return this.#lists.get(number);
  }

  /** The list that was stored last in this place. */
  listAt(slot: string): number | undefined {
    return this.#slots.get(slot);
  }

  namespaces(): string[] {
    return [...this.#checkpoints.keys()];
  }

  /** In the order in which they were put. */
  checkpoints(ns: string): SavedCheckpoint[] {
    return [...(this.#checkpoints.get(ns)?.values() ?? [])];
  }

  checkpoint(ns: string, id: string): SavedCheckpoint | undefined {
    return this.#checkpoints.get(ns)?.get(id);
  }

  /**
   * The one that was put last. Ids contain the time of the machine that made them, so the greatest id is not the last
   * if a clock is wrong.
   */
  latest(ns: string): SavedCheckpoint | undefined {
    return this.#latest.get(ns);
  }

  /** Does any checkpoint of the namespace have a value of this version? */
  hasVersion(ns: string, channel: string, version: number | string | undefined): boolean {
    return this.checkpoints(ns).some(({ versions, values }) => versions[channel] === version && values.has(channel));
  }

  writes(ns: string, id: string): SavedWrite[] {
    return [...(this.#writes.get(keyOf(ns, id))?.values() ?? [])];
  }

  #clear(epoch: NewRecord | JournalRecord): void {
    const { turns } = (epoch["checkpoint"] ?? {}) as { turns?: number };
    Object.assign(this.#turn, { turns: turns ?? 0, status: "ended", resumes: 0 });
    this.#lists.clear();
    this.#checkpoints.clear();
    this.#latest.clear();
    this.#writes.clear();
    this.#slots.clear();
  }

  #show(record: NewRecord | JournalRecord): void {
    const [list, index] = (record["item"] ?? []) as number[];
    const item = this.#lists.get(list ?? 0)?.[index ?? 0];
    if (item) this.#shown.add(item);
  }

  #turned({ kind, ...record }: NewRecord | JournalRecord): void {
    const turn = this.#turn;
    if (kind === "turn.started") Object.assign(turn, { turns: record["turn"], status: "open", resumes: 0 });
    else if (kind === "turn.resumed") Object.assign(turn, { status: "open", resumes: record["n"] });
    else if (kind === "turn.suspended") turn.status = "waiting";
    else if (kind === "turn.ended") turn.status = "ended";
  }

  #addList({ list, length, parts }: ListRecord): void {
    this.#lastList = Math.max(this.#lastList, list);
    const items = this.#lists.get(list) ?? [];
    this.#lists.set(list, items);
    // A record before this one is lost: the list ends where it was whole.
    if (items.length !== length) return;
    for (const part of parts) {
      if ("items" in part) {
        for (const item of part.items) items.push(item);
        continue;
      }
      const [from, start, count] = part;
      const copied = (this.#lists.get(from) ?? []).slice(start, start + count);
      for (const item of copied) items.push(item);
      if (copied.length < count) return;
    }
  }

  #addCheckpoint(record: CheckpointRecord): void {
    const { ns, id, parent, checkpoint, metadata, versions, same = [], delta = [] } = record;
    const values = new Map(Object.entries(record.values));
    let broken: string | undefined;
    const before = parent === undefined ? undefined : this.checkpoint(ns, parent);
    for (const channel of same) {
      const value = before?.values.get(channel);
      if (value) values.set(channel, value);
      else broken ??= channel;
    }
    for (const [channel, value] of values) {
      for (const [path, list] of listsIn(value)) this.#slots.set(slotOf(ns, channel, path), list);
    }
    const namespace = this.#checkpoints.get(ns) ?? new Map<string, SavedCheckpoint>();
    namespace.delete(id);
    namespace.set(id, { ns, id, parent, checkpoint, metadata, versions, values, delta, broken });
    this.#checkpoints.set(ns, namespace);
    this.#latest.set(ns, namespace.get(id)!);
  }

  /** A task that is run again keeps what it wrote first, except for its state (an error, an interrupt, an answer). */
  #addWrites({ ns, id, task, writes }: WritesRecord): void {
    const key = keyOf(ns, id);
    const known = this.#writes.get(key) ?? new Map<string, SavedWrite>();
    this.#writes.set(key, known);
    for (const [index, channel, value] of writes) {
      const name = JSON.stringify([task, index]);
      if (index < 0 || !known.has(name)) known.set(name, { task, index, channel, value });
    }
  }
}

/** A place in the state that can hold a list. */
export function slotOf(ns: string, channel: string, path: string): string {
  return JSON.stringify([ns, channel, path]);
}

function keyOf(ns: string, id: string): string {
  return JSON.stringify([ns, id]);
}

function* listsIn(value: StoredValue, path = ""): Generator<[path: string, list: number]> {
  if ("l" in value) yield [path, value.l[0]];
  if (!("o" in value)) return;
  for (const [name, member] of Object.entries(value.o)) yield* listsIn(member, pathOf(path, name));
}

export function pathOf(path: string, name: string): string {
  return `${path}/${name}`;
}
