import { Lexer, type Token } from "marked";

/** Lists in quotes in lists: deeper than anyone reads, and far from overflowing the stack. */
const DEPTH_MAX = 32;
/**
 * The limit for inline markup in one paragraph, and in a whole text: characters times marks. From each mark, `marked`
 * scans the rest of the paragraph, so a paragraph of marks takes quadratic time.
 */
const PARAGRAPH_WORK_MAX = 1_500_000;
const TEXT_WORK_MAX = 20_000_000;

/**
 * Parses Markdown in bounded time, whatever a model wrote. Leaves paragraphs with too many marks, and blocks that are
 * nested too deeply, as plain text.
 */
export class BoundedLexer extends Lexer {
  #depth = 0;
  #work = 0;

  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped?: boolean): never {
    if (this.#depth >= DEPTH_MAX) {
      tokens.push({ type: "paragraph", raw: src, text: src, tokens: [verbatim(src)] });
      return tokens as never;
    }
    this.#depth += 1;
    try {
      return super.blockTokens(src, tokens, lastParagraphClipped) as never;
    } finally {
      this.#depth -= 1;
    }
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    const work = src.length * marksIn(src);
    if (work > PARAGRAPH_WORK_MAX || this.#work + work > TEXT_WORK_MAX) {
      tokens.push(verbatim(src));
      return tokens;
    }
    this.#work += work;
    return super.inlineTokens(src, tokens);
  }
}

function verbatim(text: string): Token {
  return { type: "text", raw: text, text, escaped: false };
}

function marksIn(text: string): number {
  let marks = 0;
  for (let at = 0; at < text.length; at++) if ("*_~[]!<`\\@:".includes(text[at]!)) marks += 1;
  return marks;
}
