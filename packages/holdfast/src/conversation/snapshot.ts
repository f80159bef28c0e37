import { isSnapshot } from "../journal/lines/plain.ts";
import { isWellFormed, isWellFormedText } from "../text/well-formed.ts";

/**
 * A deep, frozen copy of plain JSON, as it would be read back from the journal: undefined members are omitted. A
 * snapshot is returned as it is.
 */
export function frozenCopy<T>(value: T): T {
  if (typeof value !== "object" || value === null || isSnapshot(value)) return value;
  if (Array.isArray(value)) {
    const copy: unknown[] = new Array(value.length);
    for (let i = 0; i < value.length; i++) copy[i] = frozenCopy(value[i]);
    return Object.freeze(copy) as T;
  }
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[name];
    if (member === undefined) continue;
    // The one name that assignment treats specially.
    if (name === "__proto__") Object.defineProperty(copy, name, { value: frozenCopy(member), enumerable: true });
    else copy[name] = frozenCopy(member);
  }
  return Object.freeze(copy) as T;
}

/** Like `frozenCopy`, for an object that is itself a copy but whose members are not. */
export function frozenInside<T extends object>(copy: T): T {
  const members = copy as Record<string, unknown>;
  for (const name in members) {
    const member = members[name];
    if (typeof member === "object" && member !== null) members[name] = frozenCopy(member);
    else if (member === undefined) delete members[name];
  }
  return Object.freeze(copy);
}

/** Deeper than the journal accepts (S5). Another writer's record may be deeper, and is still read. */
const DEPTH_MAX = 1000;

/**
 * Freezes plain objects and arrays in place. Bytes and URLs that a dialect decodes cannot be frozen and stay as they
 * are.
 */
export function deepFreeze<T>(value: T, depth = 0): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value) || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (typeof value[i] === "object") deepFreeze(value[i], depth + 1);
    return Object.freeze(value);
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null) return value;
  for (const name in value) {
    const member: unknown = (value as Record<string, unknown>)[name];
    // Most members are strings, and every message that is read passes here.
    if (typeof member === "object") deepFreeze(member, depth + 1);
  }
  return Object.freeze(value);
}

/** The same, and whether all texts in it can be sent unchanged (`isWellFormed`), in one pass. */
export function freezeWellFormed(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return true;
  if (Object.isFrozen(value)) return isWellFormed(value);
  let isFit = true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      if (typeof item === "string" ? !isWellFormedText(item) : !freezeWellFormed(item, depth + 1)) isFit = false;
    }
    Object.freeze(value);
    return isFit;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null) return true;
  for (const name in value) {
    const member: unknown = (value as Record<string, unknown>)[name];
    if (!isWellFormedText(name)) isFit = false;
    if (typeof member === "string" ? !isWellFormedText(member) : !freezeWellFormed(member, depth + 1)) isFit = false;
  }
  Object.freeze(value);
  return isFit;
}
