import { Marked, type Tokens } from "marked";
import { BoundedLexer } from "../terminal/markdown-lexer.ts";

/** Longer texts are shown unformatted: parsing them takes long, and nobody reads that much formatting. */
const MARKDOWN_MAX = 50_000;

export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** Only links that run nothing. */
export function isSafeLink(href: string): boolean {
  return /^(?:https?:\/\/|mailto:)[^\s\p{Cc}]+$/iu.test(href);
}

const markdown = new Marked({
  async: false,
  gfm: true,
  renderer: {
    // Raw HTML is shown, never rendered.
    html: ({ raw }: Tokens.HTML | Tokens.Tag) => escapeHtml(raw),
    // The page's own headings rank above these.
    heading({ tokens, depth }: Tokens.Heading) {
      const level = Math.min(6, depth + 3);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    code: ({ text, lang }: Tokens.Code) =>
      `<pre tabindex="0"${lang ? ` data-language="${escapeHtml(lang)}"` : ""}><code>${escapeHtml(text)}</code></pre>\n`,
    codespan: ({ text }: Tokens.Codespan) => `<code>${escapeHtml(text)}</code>`,
    link({ href, tokens }: Tokens.Link) {
      const text = this.parser.parseInline(tokens);
      if (!isSafeLink(href)) return `${text} <span class="address">(${escapeHtml(href)})</span>`;
      return `<a href="${escapeHtml(href)}" rel="noopener noreferrer nofollow">${text}</a>`;
    },
    // Opening the page must not contact another machine.
    image: ({ href, text }: Tokens.Image) =>
      `<span class="image">[image: ${escapeHtml(text || "unnamed")} <span class="address">(${escapeHtml(href.slice(0, 300))})</span>]</span>`,
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? "☑ " : "☐ "),
  },
});

/** What a model wrote, as inert HTML. */
export function answerHtml(text: string): string {
  if (text.length > MARKDOWN_MAX) return verbatim(text);
  return markdown.parser(new BoundedLexer(markdown.defaults).lex(text)) as string;
}

export function verbatim(text: string): string {
  return `<pre class="words">${escapeHtml(text)}</pre>`;
}
