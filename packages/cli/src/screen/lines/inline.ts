import type { Token, Tokens } from "marked";
import { type Line, type Span, type Style, span } from "./line.ts";

/** What stands within a paragraph, as lines: one more for each line break. */
export function inlineLines(tokens: readonly Token[] | undefined, style: Style = {}): Line[] {
  const lines: Span[][] = [[]];
  for (const { text, style: own } of (tokens ?? []).flatMap((token) => spansOf(token, style))) {
    for (const [i, piece] of text.split("\n").entries()) {
      if (i > 0) lines.push([]);
      if (piece !== "") lines.at(-1)!.push(span(piece, own));
    }
  }
  return lines;
}

function spansOf(token: Token, style: Style): Span[] {
  const inner = (of: Style): Span[] => ((token as Tokens.Strong).tokens ?? []).flatMap((one) => spansOf(one, of));
  switch (token.type) {
    case "strong":
      return inner({ ...style, bold: true });
    case "em":
      return inner({ ...style, italic: true });
    case "del":
      return inner({ ...style, strike: true });
    case "codespan":
      return [span((token as Tokens.Codespan).text, { ...style, colour: "cyan" })];
    case "br":
      return [span("\n", style)];
    case "link": {
      const { href, text } = token as Tokens.Link;
      const words = inner({ ...style, underline: true, colour: "blue" });
      // Where a link leads is never hidden behind its words. `mailto:` of an address that is spelled out says nothing new.
      const told = text === href || `mailto:${text}` === href || href === "";
      return told ? words : [...words, span(` (${href})`, { ...style, dim: true })];
    }
    case "image": {
      const { text, href } = token as Tokens.Image;
      return [span(`[image: ${text || href}]`, { ...style, dim: true })];
    }
    case "checkbox":
      return [span((token as Tokens.Checkbox).checked ? "☑ " : "☐ ", style)];
    default: {
      const { tokens, text, raw } = token as Tokens.Text;
      return tokens !== undefined && tokens.length > 0 ? inner(style) : [span(text ?? raw, style)];
    }
  }
}
