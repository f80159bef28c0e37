import type { Key as InkKey } from "ink";

/** A key, independent of what the terminal sent for it. */
export type Key =
  | { readonly name: "text"; readonly text: string }
  | { readonly name: "paste"; readonly text: string }
  | { readonly name: KeyName };

export type KeyName =
  | "enter"
  | "newline"
  | "tab"
  | "escape"
  | "backspace"
  | "delete"
  | "up"
  | "down"
  | "left"
  | "right"
  | "wordLeft"
  | "wordRight"
  | "home"
  | "end"
  | "pageUp"
  | "pageDown"
  | "killToEnd"
  | "killToStart"
  | "killWord"
  | "interrupt"
  | "endOfInput"
  | "suspend"
  | "redraw"
  | "shiftTab"
  | "searchHistory"
  | "editOutside"
  | "expand";

/** By the letter pressed with Ctrl; the control characters are 1 (A) to 26 (Z). */
const CONTROLS: Readonly<Record<string, KeyName>> = {
  a: "home",
  b: "left",
  c: "interrupt",
  d: "endOfInput",
  e: "end",
  f: "right",
  g: "editOutside",
  h: "backspace",
  j: "newline",
  k: "killToEnd",
  l: "redraw",
  m: "enter",
  i: "tab",
  n: "down",
  o: "expand",
  p: "up",
  r: "searchHistory",
  u: "killToStart",
  w: "killWord",
  z: "suspend",
};

/**
 * The keys in one piece of input from Ink. Keys that arrive at once, as from a script or a slow connection, are one
 * piece and are split here.
 */
export function keysOf(input: string, key: InkKey): Key[] {
  if (key.eventType === "release") return [];
  // Esc pressed twice, on a connection that joins what arrives at once.
  if (key.escape && key.meta) return [{ name: "escape" }, { name: "escape" }];
  const named = namedKey(input, key);
  if (named !== null) return [{ name: named }];
  if (key.ctrl || key.super || key.hyper) return [];
  return split(input);
}

function namedKey(input: string, key: InkKey): KeyName | null {
  if (key.return) return key.meta || key.shift ? "newline" : "enter";
  if (key.escape) return "escape";
  if (key.tab) return key.shift ? "shiftTab" : "tab";
  if (key.backspace) return key.meta ? "killWord" : "backspace";
  if (key.delete) return "delete";
  if (key.upArrow) return "up";
  if (key.downArrow) return "down";
  if (key.leftArrow) return key.meta || key.ctrl ? "wordLeft" : "left";
  if (key.rightArrow) return key.meta || key.ctrl ? "wordRight" : "right";
  if (key.home) return "home";
  if (key.end) return "end";
  if (key.pageUp) return "pageUp";
  if (key.pageDown) return "pageDown";
  if (key.ctrl) return CONTROLS[input] ?? null;
  if (!key.meta) return null;
  if (input === "b") return "wordLeft";
  if (input === "f") return "wordRight";
  return input === "\r" || input === "\n" ? "newline" : null;
}

function split(input: string): Key[] {
  const keys: Key[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "") keys.push({ name: "text", text });
    text = "";
  };
  for (const character of input) {
    const code = character.codePointAt(0)!;
    if (code >= 0x20 && code !== 0x7f) {
      text += character;
      continue;
    }
    flush();
    const name = code === 0x7f ? "backspace" : CONTROLS[String.fromCharCode(code + 0x60)];
    if (name !== undefined) keys.push({ name });
  }
  flush();
  // The input was typed before the screen was ready, so the terminal turned Enter into a newline. Ctrl+J comes alone.
  if (keys.length > 1 && keys.at(-1)!.name === "newline") keys[keys.length - 1] = { name: "enter" };
  return keys;
}
