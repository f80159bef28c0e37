import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Json } from "holdfast";
import type { StoredValue } from "./records.ts";

/**
 * Takes down a value of a graph's state at the instant of the call: the graph goes on, and may change it. Lists are
 * taken apart, so that only new items are stored; an item that is known to be stored is not even serialized.
 */
export type CapturedValue =
  | { readonly leaf: Promise<StoredValue> }
  | { readonly items: readonly CapturedItem[] }
  | { readonly members: readonly (readonly [name: string, value: CapturedValue])[] };

export interface CapturedItem {
  readonly item: unknown;
  /** Null if it is known and has not changed. */
  readonly content: CapturedValue | null;
  readonly known: KnownItem | null;
}

/** An object that is stored as an item of a list. */
export interface KnownItem {
  readonly list: number;
  readonly index: number;
  readonly value: StoredValue;
  /** Its members when it was stored: a changed one is stored again. */
  readonly members: readonly unknown[];
}

/** The objects that are stored, by identity. */
export type KnownItems = WeakMap<object, KnownItem>;

/** A change inside a member (`message.content[0].text = …`) is found in the last items of a list only. */
const COMPARED_ITEMS = 8;

/** A short list of strings or numbers is stored whole. */
const LIST_LENGTH_MIN = 32;

export class Capturer {
  readonly #serde: SerializerProtocol;
  readonly #known: KnownItems;

  constructor(serde: SerializerProtocol, known: KnownItems) {
    this.#serde = serde;
    this.#known = known;
  }

  /** Serializes before it returns, if the serializer does. */
  capture(value: unknown): CapturedValue {
    if (isList(value)) return this.#list(value);
    const members = membersOf(value);
    if (!members) return this.leaf(value);
    return { members: members.map(([name, member]) => [name, this.capture(member)] as const) };
  }

  leaf(value: unknown): { readonly leaf: Promise<StoredValue> } {
    const leaf = this.#serde.dumpsTyped(value).then(([type, bytes]) => storedLeaf(type, bytes));
    // A failure is reported to the caller that waits for the value; others of the same call may fail first.
    leaf.catch(() => undefined);
    return { leaf };
  }

  #list(list: readonly unknown[]): CapturedValue {
    const items: CapturedItem[] = [];
    for (let index = 0; index < list.length; index++) {
      const item = list[index];
      const known = this.#knownAs(item);
      const isCompared = index >= list.length - COMPARED_ITEMS;
      items.push({ item, known, content: known && !isCompared ? null : this.#item(item) });
    }
    return { items };
  }

  #item(item: unknown): CapturedValue {
    return isSend(item) ? this.capture(item) : this.leaf(item);
  }

  #knownAs(item: unknown): KnownItem | null {
    if (typeof item !== "object" || item === null) return null;
    const known = this.#known.get(item);
    return known && hasMembers(item, known.members) ? known : null;
  }
}

/** Remembers that this object is stored there. */
export function remember(known: KnownItems, item: unknown, place: Omit<KnownItem, "members">): void {
  if (typeof item !== "object" || item === null || !("j" in place.value || "t" in place.value)) return;
  known.set(item, { ...place, members: Object.values(item) });
}

function hasMembers(item: object, members: readonly unknown[]): boolean {
  let count = 0;
  for (const name in item) {
    if (!Object.hasOwn(item, name)) continue;
    if (!Object.is((item as Record<string, unknown>)[name], members[count])) return false;
    count++;
  }
  return count === members.length;
}

function isList(value: unknown): value is readonly unknown[] {
  if (!Array.isArray(value) || Object.getPrototypeOf(value) !== Array.prototype || "toJSON" in value) return false;
  return value.length >= LIST_LENGTH_MIN || (typeof value[0] === "object" && value[0] !== null);
}

/** LangGraph's `Send`, which carries the whole state to a node. Its serializer writes it as a plain object. */
function isSend(
  value: unknown,
): value is { readonly node: string; readonly args: unknown; readonly timeout?: unknown } {
  return typeof value === "object" && value !== null && "lg_name" in value && value.lg_name === "Send";
}

/** Null if there is no list in it that could be stored by what is new. */
function membersOf(value: unknown): (readonly [string, unknown])[] | null {
  if (isSend(value)) {
    const { node, args, timeout } = value;
    return [["node", node], ["args", args], ...(timeout === undefined ? [] : [["timeout", timeout] as const])];
  }
  if (typeof value !== "object" || value === null) return null;
  const prototype: unknown = Object.getPrototypeOf(value);
  if ((prototype !== Object.prototype && prototype !== null) || "toJSON" in value) return null;
  const members = Object.entries(value);
  return members.some(([, member]) => isList(member)) ? members : null;
}

function storedLeaf(type: string, bytes: Uint8Array): StoredValue {
  if (type === "json") return { j: JSON.parse(new TextDecoder().decode(bytes)) as Json };
  return { t: type, b: Buffer.from(bytes).toString("base64") };
}
