import type { PromptImage } from "../../host/host.ts";
import { graphemes } from "../../terminal/index.ts";

/** A long text that stands in the line as one character, with a label in its place. */
export interface Chip {
  readonly label: string;
  readonly text: string;
  /** Sent along with the text. */
  readonly image?: PromptImage;
}

/** The characters that stand for chips. Private to their users, and what is typed or pasted cannot contain them. */
const FIRST = 0x10f000;
const LAST = 0x10fffd;
export const CHIP_CHARACTERS = /[\u{10f000}-\u{10fffd}]/gu;

/** Longer pastes become a chip. */
const LINES_MAX = 10;
const CHARACTERS_MAX = 1_000;

export function isLong(text: string): boolean {
  return text.length > CHARACTERS_MAX || text.split("\n").length > LINES_MAX;
}

/** `300 lines pasted`, or for a long line how many characters. */
export function pastedLabel(text: string): string {
  const lines = text.replace(/\n$/u, "").split("\n").length;
  const many = (count: number): string => count.toLocaleString("en");
  return lines > 1 ? `${many(lines)} lines pasted` : `${many([...text].length)} characters pasted`;
}

/** The character that stands for the chip at this index; null if there are too many. */
export function chipCharacter(index: number): string | null {
  return FIRST + index > LAST ? null : String.fromCodePoint(FIRST + index);
}

/** The text with every chip replaced by what it stands for. */
export function expanded(text: string, chips: readonly Chip[]): string {
  return text.replace(CHIP_CHARACTERS, (character) => chipOf(character, chips)?.text ?? "");
}

/** The images in a text, in order. */
export function imagesIn(text: string, chips: readonly Chip[]): PromptImage[] {
  return (text.match(CHIP_CHARACTERS) ?? []).flatMap((character) => chipOf(character, chips)?.image ?? []);
}

/** The text as it is shown: every chip as its label. */
export function labelled(text: string, chips: readonly Chip[]): string {
  return text.replace(CHIP_CHARACTERS, (character) => shownAs(character, chips));
}

/** The graphemes of a text, each with its width in columns. */
export function* cells(
  text: string,
  chips: readonly Chip[],
): Generator<readonly [grapheme: string, columns: number], void, undefined> {
  for (const [grapheme, columns] of graphemes(text)) {
    const isChip = (grapheme.codePointAt(0) ?? 0) >= FIRST;
    yield [grapheme, isChip ? shownAs(grapheme, chips).length : columns];
  }
}

/** Labels are plain and narrow: see `label` in `withChip`. */
function shownAs(character: string, chips: readonly Chip[]): string {
  const chip = chipOf(character, chips);
  return chip === undefined ? "" : `[${chip.label}]`;
}

function chipOf(character: string, chips: readonly Chip[]): Chip | undefined {
  return chips[(character.codePointAt(0) ?? 0) - FIRST];
}
