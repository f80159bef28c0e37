import type { Dialect, Entry } from "../dialect.ts";
import { RegularOrder } from "../order/regular.ts";

/** The entry with its message in the base's dialect; null if it cannot be converted. */
export type Convert<M, B> = (entry: Entry<M>) => Entry<B> | null;

interface Base<M, B> {
  readonly base: Dialect<B>;
  readonly convert: Convert<M, B>;
}

// biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
const bases = new WeakMap<Dialect<any>, Base<any, any>>();

export function setBase<M, B>(dialect: Dialect<M>, base: Dialect<B>, convert: Convert<M, B>): void {
  bases.set(dialect, { base, convert });
}

/** The regular order of a mapped dialect. Null if the dialect is not mapped, or its base has no regular order. */
export function mappedOrder<M>(
  dialect: Dialect<M>,
  orderOf: <B>(base: Dialect<B>) => RegularOrder<B> | null,
): RegularOrder<M> | null {
  const found = bases.get(dialect);
  const order = found ? orderOf(found.base) : null;
  return found && order ? new MappedOrder<M, unknown>(order, found.convert) : null;
}

class MappedOrder<M, B> extends RegularOrder<M> {
  readonly #order: RegularOrder<B>;
  readonly #convert: Convert<M, B>;

  constructor(order: RegularOrder<B>, convert: Convert<M, B>) {
    super();
    this.#order = order;
    this.#convert = convert;
  }

  override get isSettled(): boolean {
    return this.#order.isSettled;
  }

  pass(entry: Entry<M>, out: M[]): boolean {
    const converted = this.#convert(entry);
    const shown: B[] = [];
    if (!converted || !this.#order.pass(converted, shown)) return false;
    if (shown.some((message) => message !== converted.message)) return false;
    for (const _ of shown) out.push(entry.message);
    return true;
  }
}
