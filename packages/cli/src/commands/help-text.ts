import { Help } from "commander";
import { widthOf } from "../terminal/width.ts";
import { wrapWords } from "../terminal/wrap-words.ts";

/** With less room than this beside the terms, descriptions go below them. */
const BESIDE_MIN = 36;
const BELOW_INDENT = "      ";
/** A number or another short mark: the text stays beside it. */
const MARK_MAX = 3;

/** An option or a command and its description, for Commander. */
export function formatItem(term: string, termWidth: number, description: string, helper: Help): string {
  const width = helper.helpWidth ?? 80;
  if (!description || width - termWidth - 4 >= BESIDE_MIN)
    return Help.prototype.formatItem.call(helper, term, termWidth, description, helper);
  return below(term, description, width).join("\n");
}

/**
 * Fits help into a terminal; undefined: not a terminal. Wraps prose between words, and leaves commands whole, so that
 * they can be copied.
 */
export function fitHelp(text: string, columns: number | undefined): string {
  if (!columns) return text;
  return text
    .split("\n")
    .flatMap((line) => (widthOf(line) <= columns ? [line] : fitLine(line, columns)))
    .join("\n");
}

function fitLine(line: string, columns: number): string[] {
  const [, term, gap, description] = /^ {2}(\S.*?)( {2,})(\S.*)$/.exec(line) ?? [];
  if (term === undefined || gap === undefined || description === undefined) {
    // An example.
    if (/^ {2}\S/.test(line)) return [line];
    return wrapWords(line, columns);
  }
  if (term.length <= MARK_MAX) return wrapWords(line, columns, term.length + gap.length);
  return below(term, description, columns);
}

function below(term: string, description: string, columns: number): string[] {
  return [...wrapWords(`  ${term}`, columns, 2), ...wrapWords(`${BELOW_INDENT}${description}`, columns)];
}
