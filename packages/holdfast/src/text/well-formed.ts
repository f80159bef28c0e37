/**
 * Text that providers accept. Half a surrogate pair (from a tool that truncates its output, or a stream that died
 * between the halves) is not Unicode: JSON can carry it, but providers' parsers answer 400 to every request that
 * contains one. A NUL truncates the text in servers written in C, and databases behind others reject it. Both become
 * U+FFFD in what is sent, which preserves every length; the journal and `entries` keep the original.
 */

/** Deeper than the journal accepts (S5): left as it is. */
const DEPTH_MAX = 1000;

const REPLACEMENT = "\ufffd";

/** Can all texts in it, including member names, be sent unchanged? Does not look into bytes and URLs. */
export function isWellFormed(value: unknown): boolean {
  return isFit(value, 0);
}

/**
 * The value with well-formed Unicode and no NUL in all texts and member names: for content sent to a model from outside
 * `session.messages`. Returns the same value if it already qualifies.
 */
export function wellFormed<T>(value: T): T {
  return isFit(value, 0) ? value : (mendValue(value, 0) as T);
}

export function isWellFormedText(text: string): boolean {
  // For one-byte strings V8 knows the first answer without looking; the second runs at memory speed.
  return text.isWellFormed() && !text.includes("\0");
}

export function wellFormedText(text: string): string {
  return isWellFormedText(text) ? text : text.toWellFormed().replaceAll("\0", REPLACEMENT);
}

/** The start of a text, at most `unitsMax` UTF-16 units, without half a character at its end. */
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

function mendValue(value: unknown, depth: number): unknown {
  if (typeof value === "string") return wellFormedText(value);
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => mendValue(item, depth + 1));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isPlain(value)) return value;
  const members = Object.entries(value);
  const names = new Set<string>();
  let isSame = true;
  const kept = members.map(([given, member]): [string, unknown] => {
    let name = wellFormedText(given);
    // Two names may differ only in their halves: keep both members.
    while (names.has(name) || (name !== given && Object.hasOwn(value, name))) name += REPLACEMENT;
    names.add(name);
    const next = mendValue(member, depth + 1);
    isSame &&= name === given && next === member;
    return [name, next];
  });
  return isSame ? value : Object.fromEntries(kept);
}

/** A plain JSON object: JSON would turn a class instance into something else. */
export function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
