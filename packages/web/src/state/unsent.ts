/** Prompts that are typed and not sent yet, by session: they survive a reload, and a crash of the tab. */

const PREFIX = "holdfast-unsent-";
/** Of how many sessions: the oldest goes. */
const SESSIONS_MAX = 50;

interface Unsent {
  readonly text: string;
  readonly at: number;
}

export function unsentOf(session: string): string {
  return read(PREFIX + session)?.text ?? "";
}

export function keepUnsent(session: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(PREFIX + session);
    else {
      localStorage.setItem(PREFIX + session, JSON.stringify({ text, at: Date.now() } satisfies Unsent));
      forgetOldest();
    }
  } catch {
    // Storage is full or switched off: the text lasts until the page is left.
  }
}

function forgetOldest(): void {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  if (keys.length <= SESSIONS_MAX) return;
  const age = (key: string): number => read(key)?.at ?? 0;
  localStorage.removeItem(keys.reduce((oldest, key) => (age(key) < age(oldest) ? key : oldest)));
}

function read(key: string): Unsent | null {
  try {
    const { text, at } = JSON.parse(localStorage.getItem(key) ?? "null") ?? {};
    return typeof text === "string" && typeof at === "number" ? { text, at } : null;
  } catch {
    return null;
  }
}
