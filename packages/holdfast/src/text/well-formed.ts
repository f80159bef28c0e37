/**
 * Text as providers take it. Half of a surrogate pair (a tool that cuts its output, a stream that died between two halves) is not
 * Unicode: JSON can carry it, but the parsers of the providers answer 400 to every request that holds one. A NUL ends the text early
 * in servers that are written in C, and databases behind others refuse it. Both become U+FFFD in what is sent, which keeps every
 * length as it was; the journal and `entries` keep the original.
 */

/** Deeper than the journal takes (S5): left as it is. */
const DEPTH_MAX = 1000;

const REPLACEMENT = "\ufffd";

/** Whether all texts in it, the names of members among them, can be sent as they are. Bytes and URLs are not looked into. */
export function isWellFormed(value: unknown): boolean {
  return isFit(value, 0);
}

/**
 * The value with well-formed Unicode in all texts and names of members, and without NUL: for what is sent to a model from elsewhere than `session.messages`. The very same value if it is so already.
 */
export function wellFormed<T>(value: T): T {
  return isFit(value, 0) ? value : (fitted(value, 0) as T);
}

export function isWellFormedText(text: string): boolean {
  // Of text with one byte per character V8 knows the first answer without looking; the second is as fast as memory.
  return text.isWellFormed() && !text.includes("\0");
}

export function wellFormedText(text: string): string {
  return isWellFormedText(text) ? text : text.toWellFormed().replaceAll("\0", REPLACEMENT);
}

/** The beginning of a text, of at most so many UTF-16 units, and no half of a character at its end. */
export function beginningOf(text: string, unitsMax: number): string {
  if (text.length <= unitsMax) return text;
  const last = text.charCodeAt(unitsMax - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? unitsMax - 1 : unitsMax);
}

function isFit(value: unknown, depth: number): boolean {
  if (typeof value === "string") return isWellFormedText(value);
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isFit(value[i], depth + 1)) return false;
    return true;
  }
  if (!isPlain(value)) return true;
  for (const name in value) {
    if (!isWellFormedText(name) || !isFit((value as Record<string, unknown>)[name], depth + 1)) return false;
  }
  return true;
}

function fitted(value: unknown, depth: number): unknown {
  if (typeof value === "string") return wellFormedText(value);
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => fitted(item, depth + 1));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isPlain(value)) return value;
  const members = Object.entries(value);
  const names = new Set<string>();
  let isSame = true;
  const kept = members.map(([given, member]): [string, unknown] => {
    let name = wellFormedText(given);
    // Two names may differ in nothing but their halves: neither member is lost.
    while (names.has(name) || (name !== given && Object.hasOwn(value, name))) name += REPLACEMENT;
    names.add(name);
    const next = fitted(member, depth + 1);
    isSame &&= name === given && next === member;
    return [name, next];
  });
  return isSame ? value : Object.fromEntries(kept);
}

/** An object of JSON's: an instance of a class would come back from JSON as something else. */
export function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
