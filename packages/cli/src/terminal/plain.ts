/** The possible starts of an escape sequence: ESC, or the C1 form of DCS, SOS, CSI, OSC, PM or APC. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matching them is the point.
const OPENER = /[\x1b\x90\x98\x9b\x9d-\x9f]/g;
/**
 * What ends the content of OSC, DCS, SOS, PM and APC: BEL or ST. ESC ends it too, but completes the sequence only if a
 * backslash follows.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matching them is the point.
const STRING_END = /[\x07\x1b\x9c]/g;
const NOT_PARAMETER = /[^0-?]/g;
const NOT_INTERMEDIATE = /[^ -/]/g;
/** Characters that change the writing direction, or that are invisible and get in the way of a search. */
const UNSEEN = /[\p{Bidi_Control}\u{feff}\u{e0001}]+/gu;
const LINE_ENDS = /\r+\n?|[\u{85}\u{2028}\u{2029}\v\f]/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: matching them is the point.
const CONTROLS = /[\x00-\x08\x0e-\x1f\x7f-\x9f]/g;
/** Quick check whether there is anything to do: most texts are harmless, and some are long. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matching them is the point.
const SUSPECT = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u{2028}\u{2029}\p{Bidi_Control}\u{feff}\u{e0001}\p{Cs}]/u;

/**
 * The same text, safe to show anywhere (C25): removes escape sequences and bidirectional controls, and makes other
 * control characters visible. Keeps line breaks and tabs.
 */
export function plain(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return withoutEscapes(text.toWellFormed())
    .replace(LINE_ENDS, lineEnds)
    .replace(UNSEEN, "")
    .replace(CONTROLS, pictureOf);
}

/** Whether `plain` would leave the text unchanged. */
export function isPlain(text: string): boolean {
  return !SUSPECT.test(text);
}

/** The same on one line: any run of white space becomes one space. */
export function plainLine(text: string): string {
  return plain(text).replace(/\s+/g, " ").trim();
}

/**
 * The same without any character that a person cannot see: for a model, which reads those too. Text hidden in them
 * would reach it unnoticed.
 */
export function onlyVisible(text: string): string {
  return plain(text).replaceAll(/[\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}]/gu, "");
}

/**
 * Removes escape sequences with their content. An unterminated string loses only its opener, so that it cannot hide the
 * text after it. Linear time: every search starts where the last one ended, and the end of a string is searched for
 * once, however many openers precede it.
 */
function withoutEscapes(text: string): string {
  let out = "";
  let done = 0;
  let stringEnd = -1;
  for (let at = indexFrom(OPENER, text, 0); at < text.length; at = indexFrom(OPENER, text, at)) {
    const isEscape = text[at] === "\x1b";
    const kind = isEscape ? text.charAt(at + 1) : c1Kind(text.charCodeAt(at));
    const body = isEscape ? at + 2 : at + 1;
    let end = -1;
    if (kind === "[") {
      const last = indexFrom(NOT_INTERMEDIATE, text, indexFrom(NOT_PARAMETER, text, body));
      if (isBetween(text, last, "@", "~")) end = last + 1;
    } else if (kind !== "" && "]PX^_".includes(kind)) {
      if (stringEnd < body) stringEnd = indexFrom(STRING_END, text, body);
      if (text[stringEnd] === "\x1b") end = text[stringEnd + 1] === "\\" ? stringEnd + 2 : -1;
      else if (stringEnd < text.length) end = stringEnd + 1;
    }
    if (end === -1 && isEscape) {
      const last = indexFrom(NOT_INTERMEDIATE, text, at + 1);
      end = isBetween(text, last, "0", "~") ? last + 1 : last;
    }
    // Keep the C1 form of an unterminated sequence: it is shown as a control character.
    if (end === -1) {
      at += 1;
      continue;
    }
    out += text.slice(done, at);
    done = end;
    at = end;
  }
  return out + text.slice(done);
}

/** The character that, after ESC, makes the same opener. */
function c1Kind(code: number): string {
  return String.fromCharCode(code - 0x40);
}

/** The index of the next character of this class; the length of the text if there is none. */
function indexFrom(global: RegExp, text: string, from: number): number {
  global.lastIndex = from;
  return global.exec(text)?.index ?? text.length;
}

function isBetween(text: string, at: number, first: string, last: string): boolean {
  return at < text.length && text[at]! >= first && text[at]! <= last;
}

/** `\r\n` is one line end, however many `\r` it has. Each `\r` without a `\n` is one too. */
function lineEnds(found: string): string {
  return found.endsWith("\n") ? "\n" : "\n".repeat(found.length);
}

function pictureOf(control: string): string {
  const code = control.charCodeAt(0);
  if (code === 0x7f) return "\u2421";
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : "\ufffd";
}
