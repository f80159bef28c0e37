import type { Json } from "../../journal/record.ts";
import { decodeBytes, encodeBytes } from "../bytes.ts";
import type { Dialect, Entry, View } from "../dialect.ts";
import { type Convert, type Converted, setBase } from "./mapped-order.ts";

/**
 * How the messages of a framework (`M`) map to those of the dialect it resembles (`B`). Both functions are pure, and
 * keep everything a model is sent.
 */
export interface DialectMapping<M, B> {
  /** The new dialect's name. Journals name it, so it must not change. */
  readonly name: string;
  /** It must go on accepting what it accepted before: a recorded message that no longer fits fails every request. */
  readonly to: (message: M) => B;
  /** Only for messages that Holdfast makes or must change: all others come back as they were recorded. */
  readonly from: (message: B) => M;
  /** Turns a message into JSON, if it is a class instance, for example. */
  readonly encode?: (message: M) => Json;
  readonly decode?: (stored: Json) => M;
}

/** A dialect for messages that differ from those of `base` by their names and nesting only. */
export function mapDialect<M, B>(base: Dialect<B>, mapping: DialectMapping<M, B>): Dialect<M> {
  const { name, to, from } = mapping;
  const { approvals, parts, unsent } = base;
  const convert = converting(base, to);
  const dialect: Dialect<M> = {
    name,
    check: (message) => {
      try {
        return base.check(to(message));
      } catch (error) {
        return inconvertible(base.name, error);
      }
    },
    ...coding(base, mapping),
    role: (message) => tried(() => base.role(to(message)), "other"),
    text: (message) => tried(() => base.text(to(message)), ""),
    calls: (message) => tried(() => base.calls(to(message)), []),
    results: (message) => tried(() => base.results(to(message)), []),
    ...(approvals ? { approvals: (message) => tried(() => approvals.call(base, to(message)), []) } : {}),
    ...(parts ? { parts: (message) => tried(() => parts.call(base, to(message)), []) } : {}),
    result: (call, outcome) => mapUnlessNull(base.result(call, outcome), from),
    incomplete: (text) => mapUnlessNull(base.incomplete(text), from),
    boundary: (text) => from(base.boundary(text)),
    same: (a, b) => a === b || tried(() => base.same(to(a), to(b)), false),
    ...(unsent ? { unsent: (step) => tried(() => unsent.call(base, step.map(to)), null) } : {}),
    arrange: (entries, view) => arrange(base, convert, from, entries, view),
  };
  setBase(dialect, base, convert);
  return dialect;
}

/** Converts the messages of recorded entries, each once: neither an entry nor its message changes. */
function converting<M, B>(base: Dialect<B>, to: (message: M) => B): Convert<M, B> {
  const known = new WeakMap<Entry<M>, Converted<B>>();
  const convert = (entry: Entry<M>): Converted<B> => {
    try {
      const message = to(entry.message);
      return { entry: { ...entry, message }, unfit: base.check(message) };
    } catch (error) {
      return { entry: null, unfit: inconvertible(base.name, error) };
    }
  };
  return (entry) => {
    const before = known.get(entry);
    if (before) return before;
    const converted = convert(entry);
    known.set(entry, converted);
    return converted;
  };
}

function inconvertible(base: string, error: unknown): string {
  const why = error instanceof Error ? error.message : "it threw no error";
  return `it cannot be converted to the dialect "${base}" (${why})`;
}

/** A dialect answers whatever it is given, and the application's functions may throw. */
function tried<T>(ask: () => T, otherwise: T): T {
  try {
    return ask();
  } catch {
    return otherwise;
  }
}

/** What the base leaves unchanged comes back as it was recorded. */
function arrange<M, B>(
  base: Dialect<B>,
  convert: Convert<M, B>,
  from: (message: B) => M,
  entries: readonly Entry<M>[],
  view: View,
): M[] {
  const recorded = new Map<B, M>();
  const converted: Entry<B>[] = [];
  for (const entry of entries) {
    const { entry: made } = convert(entry);
    // A session refuses to make a request without it (view/arrange.ts).
    if (!made) continue;
    recorded.set(made.message, entry.message);
    converted.push(made);
  }
  return base.arrange(converted, view).map((message) => recorded.get(message) ?? from(message));
}

/** The message itself is stored, not what it maps to, so that nothing of it is lost. */
function coding<M, B>(
  base: Dialect<B>,
  { encode, decode }: DialectMapping<M, B>,
): Pick<Dialect<M>, "encode" | "decode"> {
  if (encode || decode) return { ...(encode ? { encode } : {}), ...(decode ? { decode } : {}) };
  if (!base.encode) return {};
  return { encode: encodeBytes, decode: (stored) => decodeBytes(stored) as M };
}

function mapUnlessNull<B, M>(message: B | null, from: (message: B) => M): M | null {
  return message === null ? null : from(message);
}
