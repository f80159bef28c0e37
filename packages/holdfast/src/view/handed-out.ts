/**
 * What a session shows is frozen, but bytes cannot be. A caller that receives a message with bytes gets its own copy of
 * them, so that writing into it changes neither what is shown next nor what an epoch or a fork writes (R19). Returns
 * the same value if there are no bytes.
 */
export function handedOut<T>(value: T): T {
  return copyMessage(value) as T;
}

/** Values known to hold no bytes: they are frozen and stay so. */
const plain = new WeakSet<object>();

function copyMessage(value: unknown): unknown {
  if (typeof value !== "object" || value === null || plain.has(value)) return value;
  if (value instanceof Uint8Array) return Buffer.isBuffer(value) ? Buffer.from(value) : value.slice();
  if (value instanceof ArrayBuffer) return value.slice();
  if (value instanceof URL) return new URL(value);
  if (!Object.isFrozen(value)) return value;
  let copy: Record<string, unknown> | unknown[] | null = null;
  for (const [name, member] of Object.entries(value)) {
    const own = copyMessage(member);
    if (own === member) continue;
    copy ??= Array.isArray(value) ? [...value] : { ...value };
    Object.defineProperty(copy, name, { value: own, enumerable: true, writable: true, configurable: true });
  }
  if (copy) return Object.freeze(copy);
  plain.add(value);
  return value;
}
