import type { Json } from "holdfast";
import type { NewRecord } from "holdfast/store";

/**
 * The records of a thread. A thread is a session; its journal has one `graph.checkpoint` for each `put`, preceded in
 * the same unit by what the lists in its state have gained (`graph.list`), and one `graph.writes` for each `putWrites`.
 */

/** A stored value. */
export type StoredValue =
  /** What the serializer wrote, if that was JSON. */
  | { readonly j: Json }
  /** Any other bytes that the serializer wrote, in base64, with the type it gave. */
  | { readonly t: string; readonly b: string }
  /** The first items of a list. */
  | { readonly l: readonly [list: number, length: number] }
  /** A plain object with a list somewhere in it. */
  | { readonly o: Readonly<Record<string, StoredValue>> };

/** A run of items of any list, or new items. */
export type ListPart =
  | readonly [list: number, from: number, count: number]
  | { readonly items: readonly StoredValue[] };

/** Adds items to a list that has `length` of them; the first record of a list has `length` 0. */
export interface ListRecord extends NewRecord {
  readonly kind: "graph.list";
  readonly list: number;
  readonly length: number;
  readonly parts: readonly ListPart[];
}

export interface CheckpointRecord extends NewRecord {
  readonly kind: "graph.checkpoint";
  readonly ns: string;
  readonly id: string;
  readonly parent?: string;
  /** Without its id, its versions and its values. */
  readonly checkpoint: StoredValue;
  readonly metadata: StoredValue;
  readonly versions: Readonly<Record<string, number | string>>;
  /** The values that are not the parent's. */
  readonly values: Readonly<Record<string, StoredValue>>;
  /** The channels whose values are those of the parent. */
  readonly same?: readonly string[];
  /** The delta channels of the graph: their values are the writes since the last snapshot. */
  readonly delta?: readonly string[];
}

export interface WritesRecord extends NewRecord {
  readonly kind: "graph.writes";
  readonly ns: string;
  readonly id: string;
  readonly task: string;
  readonly writes: readonly (readonly [index: number, channel: string, value: StoredValue])[];
}

export type ThreadRecord = ListRecord | CheckpointRecord | WritesRecord;
