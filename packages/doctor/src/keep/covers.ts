import { fieldsOf, listIn, textIn } from "../contract/shapes.ts";

/** Whether a file that is one object of JSON, and is rewritten as it grows, still has all that it had. */
export function covers(now: string, before: string): boolean {
  try {
    const [newer, older] = [listsOf(JSON.parse(now)), listsOf(JSON.parse(before))];
    return [...older].every(([key, list]) => hasAll(newer.get(key) ?? [], list));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** The lists in it, such as its messages, by the fields that hold them. */
function listsOf(value: unknown): Map<string, readonly unknown[]> {
  if (Array.isArray(value)) return new Map([["", value]]);
  return new Map(Object.entries(fieldsOf(value)).flatMap(([key, list]) => (Array.isArray(list) ? [[key, list]] : [])));
}

function hasAll(list: readonly unknown[], wanted: readonly unknown[]): boolean {
  const texts = new Set<string>();
  const lengths = new Map<string, number>();
  for (const value of list) {
    const text = JSON.stringify(value);
    texts.add(text);
    const id = textIn(fieldsOf(value)["id"]);
    if (id !== null) lengths.set(id, Math.max(text.length, lengths.get(id) ?? 0));
  }
  return listIn(wanted).every((value) => {
    const text = JSON.stringify(value);
    if (texts.has(text)) return true;
    // A message that grew, or got the results of its calls.
    const id = textIn(fieldsOf(value)["id"]);
    return id !== null && (lengths.get(id) ?? -1) >= text.length;
  });
}
