import { HoldfastError } from "../../errors.ts";

/**
 * Some runtimes' JSON.parse and JSON.stringify fail beyond this depth. Readers allow slightly more (RECORD_LEVELS_MAX).
 */
const DEPTH_MAX = 1000;
/**
 * A snapshot becomes a member of a record, and later a member of a member of an epoch's record: a value accepted once
 * must still fit there.
 */
const RECORD_DEPTH_MAX = DEPTH_MAX + 9;

/** Lets a subclass add its private members to an object that already exists. */
class Existing {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: this is the whole purpose of the class.
    return object;
  }
}

/**
 * Marks the copies made by `snapshot`: plain throughout, frozen, and held by no one else. A private member is invisible
 * from outside, a spread does not copy it, and setting it costs a tenth of what a WeakSet does.
 */
class Mark extends Existing {
  readonly #chars: number;

  constructor(copy: object, chars: number) {
    super(copy);
    this.#chars = chars;
  }

  static charsOf(value: object): number | undefined {
    return #chars in value ? value.#chars : undefined;
  }
}

export function isSnapshot(value: unknown): boolean {
  return typeof value === "object" && value !== null && Mark.charsOf(value) !== undefined;
}

/** The approximate number of characters of a snapshot as JSON: at least as many as there are. */
export function charsOfSnapshot(value: object): number | undefined {
  return Mark.charsOf(value);
}

/**
 * Counted for the quotation marks around a string, for any other scalar, and for what surrounds a member or an item.
 */
export const CHARS_OF = { quotes: 2, scalar: 8, braces: 2, member: 4, item: 2 } as const;

/**
 * Of the copy being made: its size, whether a value that is not plain was left in place, whether that is allowed, and
 * how deep it may be nested. Every message passes here, and an object or closures for these would cost a tenth of the
 * copy.
 */
let chars = 0;
let isPlainCopy = true;
let mayLeave = false;
let depthMax = DEPTH_MAX;

/**
 * A deep, frozen copy of plain JSON, made inside the call. Each member is read once, so neither a later change nor a
 * getter that returns different values can make what is stored differ from what is shown (R19). Throws RECORD_NOT_JSON
 * for values that JSON would change or that cannot be read.
 */
export function snapshot<T>(value: T, path: string): T {
  return isSnapshot(value) ? value : copyPlain(value, path, false).copy;
}

/**
 * The same, but values that are not plain (bytes, a URL, a class instance) stay in place for a dialect to encode.
 * `isPlain`: there were none.
 */
export function snapshotAround<T>(value: T, path: string): { readonly copy: T; readonly isPlain: boolean } {
  return isSnapshot(value) ? { copy: value, isPlain: true } : copyPlain(value, path, true);
}

/** As it propagates upwards, every level prepends its name to the path. */
class Flaw extends Error {
  readonly why: string;
  path = "";
  isDeep = false;

  constructor(why: string, cause?: unknown) {
    super(why, { cause });
    this.why = why;
  }
}

function copyPlain<T>(value: T, path: string, leaves: boolean, levels = DEPTH_MAX): { copy: T; isPlain: boolean } {
  // A getter may make another snapshot meanwhile.
  const outside = { chars, isPlainCopy, mayLeave, depthMax };
  chars = 0;
  isPlainCopy = true;
  mayLeave = leaves;
  depthMax = levels;
  try {
    const copy = copyOf(value, 1) as T;
    if (typeof copy === "object" && copy !== null && copy !== value) {
      if (isPlainCopy) new Mark(copy, chars);
      Object.freeze(copy);
    }
    return { copy, isPlain: isPlainCopy };
  } catch (error) {
    const flaw = unreadable(error);
    throw notJson(path + flaw.path, flaw.why, flaw.cause);
  } finally {
    ({ chars, isPlainCopy, mayLeave, depthMax } = outside);
  }
}

/** The top level is frozen by the caller, which may have to mark it first. */
function copyOf(value: unknown, depth: number): unknown {
  if (typeof value === "string") {
    chars += value.length + CHARS_OF.quotes;
    return value;
  }
  if (typeof value !== "object" || value === null) {
    chars += CHARS_OF.scalar;
    return noted(value);
  }
  if (depth > depthMax) throw tooDeep();
  chars += CHARS_OF.braces;
  if (Array.isArray(value)) {
    if (hasToJson(value) || !isPlainArray(value)) return noted(value);
    const copy = itemsOf(value, depth);
    return depth === 1 ? copy : Object.freeze(copy);
  }
  if (hasToJson(value) || !isPlainObject(value)) return noted(value);
  const copy = membersOf(value as Shape, depth);
  return depth === 1 ? copy : Object.freeze(copy);
}

/** A value that is not copied: notes it if JSON would change it, or throws if it may not be left in place. */
function noted(value: unknown): unknown {
  const isObject = typeof value === "object" && value !== null;
  // An object that gets here was found not to be plain, whatever it says when it is asked again.
  const why = flawOf(value) ?? (isObject ? "it would not come back from JSON as it was" : null);
  if (why === null) return value;
  if (!mayLeave) throw new Flaw(why);
  isPlainCopy = false;
  return value;
}

type Shape = { readonly [member: string]: unknown };

function itemsOf(value: readonly unknown[], depth: number): object {
  const copy: unknown[] = new Array(value.length);
  let i = 0;
  try {
    for (; i < copy.length; i++) {
      const item = value[i];
      // No dialect can encode a hole, and a list may consist of billions of them.
      if (item === undefined) throw new Flaw("undefined is not JSON");
      chars += CHARS_OF.item;
      copy[i] = copyOf(item, depth + 1);
    }
  } catch (error) {
    throw under(`[${i}]`, error);
  }
  return copy;
}

function membersOf(value: Shape, depth: number): object {
  const copy: Record<string, unknown> = {};
  let at = "";
  try {
    const names = Object.keys(value);
    for (let i = 0; i < names.length; i++) {
      const name = names[i]!;
      at = name;
      const member = value[name];
      if (member === undefined) continue;
      chars += name.length + CHARS_OF.member;
      const kept = copyOf(member, depth + 1);
      // The one name for which an assignment does something else.
      if (name === "__proto__") Object.defineProperty(copy, name, { value: kept, enumerable: true });
      else copy[name] = kept;
    }
  } catch (error) {
    throw at === "" ? error : under(`.${at}`, error);
  }
  return copy;
}

function under(name: string, error: unknown): Flaw {
  const flaw = unreadable(error);
  if (!flaw.isDeep) flaw.path = name + flaw.path;
  return flaw;
}

function tooDeep(): Flaw {
  const flaw = new Flaw(`it contains itself, or is nested deeper than ${depthMax} levels`);
  flaw.isDeep = true;
  return flaw;
}

/** A getter that throws, or a revoked proxy. */
function unreadable(error: unknown): Flaw {
  if (error instanceof Flaw) return error;
  let words = "";
  try {
    words = error instanceof Error ? error.message : String(error);
  } catch {
    words = "an error that cannot be printed";
  }
  return new Flaw(`it cannot be read (${words.slice(0, 200)})`, error);
}

/** Why JSON would change the value itself, regardless of its content; null if it would not. */
function flawOf(value: unknown): string | null {
  switch (typeof value) {
    case "string":
    case "boolean":
      return null;
    case "number":
      return Number.isFinite(value) ? null : `${value} is not a JSON number`;
    case "bigint":
      return "a BigInt is not JSON";
    case "undefined":
      return "undefined is not JSON";
    case "function":
    case "symbol":
      return `a ${typeof value} is not JSON`;
  }
  if (typeof value !== "object" || value === null) return null;
  if (hasToJson(value)) return `${nameOf(value)} has a toJSON, and would not come back as it was`;
  if (Array.isArray(value) ? isPlainArray(value) : isPlainObject(value)) return null;
  return `${nameOf(value)} would not come back from JSON as it was`;
}

/**
 * Refuses values that JSON would change (S5): NaN and infinities, BigInt, functions, symbols, holes and undefined in
 * arrays, objects with another prototype (Map, Date, Uint8Array, class instances) or a `toJSON`, cycles. Undefined
 * members are dropped, as JSON does.
 */
export function assertPlain(value: unknown, path: string): void {
  // A copy finds the flaw and its path, and there is none if only inherited members were wrong.
  if (!isPlain(value, 1)) copyPlain(value, path, false, RECORD_DEPTH_MAX);
}

/**
 * The fast check, without a path: it runs on every append. `for in` is faster than any list of names, but also sees
 * inherited members, which JSON ignores.
 */
function isPlain(value: unknown, depth: number): boolean {
  // Not a switch: V8 would make a call for the name of each type, and then compare names.
  if (typeof value === "string" || typeof value === "boolean" || value === null) return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object") return false;
  if (depth > RECORD_DEPTH_MAX) return false;
  // Only for members of a record: further down, the lookup would cost more than it saves.
  if (depth === 2 && Mark.charsOf(value) !== undefined) return true;
  if (Array.isArray(value)) {
    if (hasToJson(value) || !isPlainArray(value)) return false;
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth + 1)) return false;
    return true;
  }
  if (hasToJson(value) || !isPlainObject(value)) return false;
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name];
    if (member !== undefined && !isPlain(member, depth + 1)) return false;
  }
  return true;
}

/** A prototype whose own prototype is null is the Object.prototype of some realm. */
export function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype) return true;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The same for the Array.prototype of some realm: an instance of an Array subclass is one step further from null. */
function isPlainArray(value: readonly unknown[]): boolean {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) return true;
  const base = prototype === null ? null : Object.getPrototypeOf(prototype);
  return base !== null && Object.getPrototypeOf(base) === null;
}

function hasToJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

function notJson(path: string, why: string, cause?: unknown): HoldfastError {
  const message = `The record was not written: at ${path}, ${why}. Nothing before it is affected. Convert the value, and append again.`;
  return new HoldfastError("RECORD_NOT_JSON", message, { path, why }, cause);
}

function nameOf(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === "string" && name !== "" ? `a value of class ${name}` : "a value of an unnamed class";
}
