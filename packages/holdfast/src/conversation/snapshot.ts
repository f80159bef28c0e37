import { isSnapshot } from "../journal/lines/plain.ts";

/** A deep, frozen copy of plain JSON, as it would come back from the journal: members that are undefined are not there. A snapshot is such a copy already. */
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
    // The one name that an assignment would take for something else.
    if (name === "__proto__") Object.defineProperty(copy, name, { value: frozenCopy(member), enumerable: true });
    else copy[name] = frozenCopy(member);
  }
  return Object.freeze(copy) as T;
}

/** The same of an object that is a copy already, but not what is in it. */
export function frozenInside<T extends object>(copy: T): T {
  const members = copy as Record<string, unknown>;
  for (const name in members) {
    const member = members[name];
    if (typeof member === "object" && member !== null) members[name] = frozenCopy(member);
    else if (member === undefined) delete members[name];
  }
  return Object.freeze(copy);
}

/** Deeper than the journal takes (S5). A record of another writer's may be: it is read all the same. */
const DEPTH_MAX = 1000;

/** Freezes plain objects and arrays where they stand. What a dialect makes of bytes and URLs stays as it is: those cannot be frozen. */
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
    // Most are texts, and every message that is read passes here.
    if (typeof member === "object") deepFreeze(member, depth + 1);
  }
  return Object.freeze(value);
}
