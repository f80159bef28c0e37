/** Its first part is a time, which neighbouring sessions share; its end is random. */
const SHORT = 8;
const WHOLE = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** An id in a text, but not one in a path. */
const IN_TEXT = /(?<![\w/\\.-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w/\\-]|\.\w)/g;

/** What people see of an id, and can type: its last characters. */
export function shortId(id: string): string {
  return WHOLE.test(id) ? id.slice(-SHORT) : id;
}

/** The same text with short ids. */
export function withShortIds(text: string): string {
  return text.replace(IN_TEXT, shortId);
}

/** Short ids that tell these sessions apart: a whole id where the short one is not enough. */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const times = new Map<string, number>();
  for (const id of ids) times.set(shortId(id), (times.get(shortId(id)) ?? 0) + 1);
  return new Map(ids.map((id) => [id, times.get(shortId(id)) === 1 ? shortId(id) : id]));
}

/** Whether a user can mean this session: by the start or end of its id, or by the start of its short form. */
export function isMeant(id: string, given: string): boolean {
  return id.startsWith(given) || id.endsWith(given) || shortId(id).startsWith(given);
}
