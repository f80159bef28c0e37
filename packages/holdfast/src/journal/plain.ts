import { HoldfastError } from "../errors.ts";

/** Deeper than this, JSON.parse and JSON.stringify of some runtimes give up. Readers allow a little more (RECORD_LEVELS_MAX). */
const DEPTH_MAX = 1000;

/**
 * Refuses what JSON would change (S5): NaN and infinities, BigInt, functions, symbols, holes and undefined in arrays, objects with a
 * prototype of their own (Map, Date, Uint8Array, class instances) or a `toJSON`, cycles. Undefined members are dropped, as JSON does.
 */
export function assertPlain(value: unknown, path: string): void {
  if (isPlain(value, 0)) return;
  const error = refusal(value, path);
  if (error) throw error;
}

/**
 * The fast answer, without a path: this runs on every append. `for in` is faster than any list of names, but sees inherited members too,
 * which JSON does not: a no is looked into once more.
 */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth > DEPTH_MAX) return false;
  if (Array.isArray(value)) {
    if (!isPlainArray(value)) return false;
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth + 1)) return false;
    return true;
  }
  if (!isPlainObject(value)) return false;
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name];
    if (member !== undefined && !isPlain(member, depth + 1)) return false;
  }
  return true;
}

/** A prototype whose own prototype is null is the Object.prototype of some realm. */
function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return false;
  return !hasToJson(value);
}

/** The same for the Array.prototype of some realm: an instance of a class of arrays is one step further away from null. */
function isPlainArray(value: readonly unknown[]): boolean {
  const prototype = Object.getPrototypeOf(value);
  const base = prototype === null ? null : Object.getPrototypeOf(prototype);
  return base !== null && Object.getPrototypeOf(base) === null && !hasToJson(value);
}

function hasToJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

/** The slow answer: which place it is, and why. Null if only inherited members were in the way. */
function refusal(root: unknown, rootPath: string): HoldfastError | null {
  const ancestors: object[] = [];
  const visit = (value: unknown, path: string): [path: string, why: string] | null => {
    if (typeof value === "number") return Number.isFinite(value) ? null : [path, `${value} is not a JSON number`];
    if (typeof value === "bigint") return [path, "a BigInt is not JSON"];
    if (value === undefined) return [path, "undefined is not JSON"];
    if (typeof value === "function" || typeof value === "symbol") return [path, `a ${typeof value} is not JSON`];
    if (typeof value !== "object" || value === null) return null;
    if (ancestors.includes(value)) return [path, "it contains itself"];
    if (ancestors.length > DEPTH_MAX) return [path, `it is nested deeper than ${DEPTH_MAX} levels`];
    if (hasToJson(value)) return [path, `${nameOf(value)} has a toJSON, and would not come back as it was`];
    if (Array.isArray(value) ? !isPlainArray(value) : !isPlainObject(value)) {
      return [path, `${nameOf(value)} would not come back from JSON as it was`];
    }
    ancestors.push(value);
    try {
      if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++) {
          const found = visit(value[i], `${path}[${i}]`);
          if (found) return found;
        }
        return null;
      }
      for (const [name, member] of Object.entries(value)) {
        const found = member === undefined ? null : visit(member, `${path}.${name}`);
        if (found) return found;
      }
      return null;
    } finally {
      ancestors.pop();
    }
  };
  const found = visit(root, rootPath);
  if (!found) return null;
  const [path, why] = found;
  return new HoldfastError(
    "RECORD_NOT_JSON",
    `The record was not written: at ${path}, ${why}. Nothing before it is affected. Convert the value, and append again.`,
    { path, why },
  );
}

function nameOf(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === "string" && name !== "" ? `a value of class ${name}` : "a value of a class of its own";
}
