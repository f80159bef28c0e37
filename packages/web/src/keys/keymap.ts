/** What a key does, in which part of the page. The help lists the same table. */
export interface Shortcut {
  readonly keys: readonly string[];
  readonly action: Action;
  readonly words: string;
  readonly where: "anywhere" | "list" | "session";
}

export type Action =
  | "search"
  | "next-session"
  | "previous-session"
  | "open-session"
  | "back"
  | "help"
  | "theme"
  | "next-prompt"
  | "previous-prompt"
  | "next-mark"
  | "previous-mark"
  | "first"
  | "last"
  | "write"
  | "stop"
  | "zoom-in"
  | "zoom-out"
  | "zoom-all"
  | "pan-left"
  | "pan-right";

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: ["/"], action: "search", words: "Search all sessions", where: "anywhere" },
  { keys: ["j"], action: "next-session", words: "Next session", where: "anywhere" },
  { keys: ["k"], action: "previous-session", words: "Previous session", where: "anywhere" },
  { keys: ["Enter"], action: "open-session", words: "Open the selected session", where: "list" },
  { keys: ["Escape"], action: "back", words: "Back to the list; leave a field", where: "anywhere" },
  { keys: ["n"], action: "next-prompt", words: "Next prompt", where: "session" },
  { keys: ["p"], action: "previous-prompt", words: "Previous prompt", where: "session" },
  { keys: ["]"], action: "next-mark", words: "Next interruption on the timeline", where: "session" },
  { keys: ["["], action: "previous-mark", words: "Previous interruption on the timeline", where: "session" },
  { keys: ["g", "Home"], action: "first", words: "First message", where: "session" },
  { keys: ["G", "End"], action: "last", words: "Last message", where: "session" },
  { keys: ["c"], action: "write", words: "Write a prompt", where: "session" },
  { keys: ["s"], action: "stop", words: "Stop the running turn", where: "session" },
  { keys: ["+", "="], action: "zoom-in", words: "Zoom into the timeline", where: "session" },
  { keys: ["-"], action: "zoom-out", words: "Zoom out", where: "session" },
  { keys: ["0"], action: "zoom-all", words: "Show the whole timeline", where: "session" },
  { keys: ["h"], action: "pan-left", words: "Move the timeline left", where: "session" },
  { keys: ["l"], action: "pan-right", words: "Move the timeline right", where: "session" },
  { keys: ["t"], action: "theme", words: "Light or dark", where: "anywhere" },
  { keys: ["?"], action: "help", words: "Show these keys", where: "anywhere" },
];

export interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  /** The focus is in a field that takes text. */
  readonly isTyping: boolean;
  /** The focus is on a button, a link or the like, which has its own keys. */
  readonly isOnControl: boolean;
}

/** What a key press means; null if it is not ours. Keys with Ctrl, Alt or Command are the browser's. */
export function actionFor(
  { key, ctrlKey, metaKey, altKey, isTyping, isOnControl }: KeyPress,
  hasSession: boolean,
): Action | null {
  if (ctrlKey || metaKey || altKey) return null;
  if (isTyping) return key === "Escape" ? "back" : null;
  const found = SHORTCUTS.find(({ keys, where }) => keys.includes(key) && (where !== "session" || hasSession));
  if (!found || (isOnControl && (key === "Enter" || key === "Home" || key === "End"))) return null;
  return found.action;
}
