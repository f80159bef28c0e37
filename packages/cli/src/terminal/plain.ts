/**
 * Escape sequences with their content: CSI; OSC, DCS, SOS, PM and APC up to their end; any other. Each begins with ESC or with its C1 form. A string that does not end loses its first two
 * characters only, so that nobody can hide a text behind it; and since no part of the expression runs over an ESC, its cost grows with the length of the text alone.
 */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is for.
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]?/g;
/** What turns the direction of writing, or is not seen and stands in the way of a search. */
const UNSEEN = /[\p{Bidi_Control}\u{feff}\u{e0001}]+/gu;
const LINE_ENDS = /\r+\n|[\r\u{85}\u{2028}\u{2029}\v\f]/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is for.
const CONTROLS = /[\x00-\x08\x0e-\x1f\x7f-\x9f]/g;
/** Is there anything to be done at all? Most texts are harmless, and some are long. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is for.
const SUSPECT = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u{2028}\u{2029}\p{Bidi_Control}\u{feff}\u{e0001}\p{Cs}]/u;

/**
 * The same text, harmless wherever it is shown (C25): without escape sequences and without what turns the direction of writing; other control characters are made visible. New lines and tabs stay.
 */
export function plain(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return text
    .toWellFormed()
    .replace(ESCAPES, "")
    .replace(LINE_ENDS, "\n")
    .replace(UNSEEN, "")
    .replace(CONTROLS, pictureOf);
}

/** Does `plain` take anything out, or turn it into something else? */
export function isPlain(text: string): boolean {
  return !SUSPECT.test(text);
}

/** The same on one line: white space of any kind becomes one space. */
export function plainLine(text: string): string {
  return plain(text).replace(/\s+/g, " ").trim();
}

function pictureOf(control: string): string {
  const code = control.charCodeAt(0);
  if (code === 0x7f) return "\u2421";
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : "\ufffd";
}
