/**
 * A mutable copy. The session returns frozen messages, and `structuredClone` rejects URLs, which messages can contain.
 */
export function mutableCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  if (value instanceof URL) return new URL(value);
  if (Buffer.isBuffer(value)) return Buffer.from(value);
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return value.slice(0);
  // Class instances are not copied. An object without a prototype is plain data.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copy(member)]));
}
