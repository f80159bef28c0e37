import type { Dialect, Entry } from "../dialect.ts";
import { RegularOrder } from "../order/regular.ts";

/** An entry with its message in the base's dialect. */
export interface Converted<B> {
  /** Null if it cannot be converted. */
  readonly entry: Entry<B> | null;
  /** Why it does not fit the base; null if it does. */
  readonly unfit: string | null;
}

export type Convert<M, B> = (entry: Entry<M>) => Converted<B>;

interface Mapped<M, B> {
  readonly dialect: Dialect<M>;
  readonly base: Dialect<B>;
  readonly convert: Convert<M, B>;
}

/** By `arrange`, which an altered copy of a mapped dialect shares with it. */
// biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
const mapped = new WeakMap<object, Mapped<any, any>>();

export function setBase<M, B>(dialect: Dialect<M>, base: Dialect<B>, convert: Convert<M, B>): void {
  mapped.set(dialect.arrange, { dialect, base, convert });
}

/**
 * Why a mapped dialect can no longer read a message that it could read when it was recorded; null if it can, or is not
 * mapped.
 */
export function unfitNow<M>(dialect: Dialect<M>, entry: Entry<M>): string | null {
  return mapped.get(dialect.arrange)?.convert(entry).unfit ?? null;
}

/** The regular order of a mapped dialect. Null if the dialect is not mapped, or its base has no regular order. */
export function mappedOrder<M>(
  dialect: Dialect<M>,
  orderOf: <B>(base: Dialect<B>) => RegularOrder<B> | null,
): RegularOrder<M> | null {
  const found = mapped.get(dialect.arrange);
  const order = found?.dialect === dialect ? orderOf(found.base) : null;
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
    const { entry: converted, unfit } = this.#convert(entry);
    const shown: B[] = [];
    if (!converted || unfit !== null || !this.#order.pass(converted, shown)) return false;
    if (shown.some((message) => message !== converted.message)) return false;
    for (const _ of shown) out.push(entry.message);
    return true;
  }
}
