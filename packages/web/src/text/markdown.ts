import DOMPurify from "dompurify";
import { Marked } from "marked";

/**
 * Markdown as harmless HTML. The model, its tools and the files it reads write this text, so it is hostile until proven
 * otherwise: only the elements below survive, nothing is loaded, and a link says where it leads. The content security
 * policy of the page would stop a script even if one came through.
 */

const TAGS = [
  ...[
    "p",
    "br",
    "hr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "code",
    "em",
    "strong",
  ],
  ...["del", "a", "table", "thead", "tbody", "tr", "th", "td", "span", "sub", "sup", "kbd"],
];
const ATTRIBUTES = ["href", "title", "start", "align", "class"];
const LINKS = /^(?:https?:|mailto:)/i;
/** Longer texts are shown as they are: laying them out takes too long. */
const CHARACTERS_MAX = 200_000;

const marked = new Marked({
  gfm: true,
  breaks: false,
  async: false,
  renderer: {
    // HTML in a message is text: the person sees what the model wrote.
    html: ({ text }) => escapeHtml(text),
    // An image would be loaded from the network.
    image: ({ href, text }) => `<span class="no-image">[image: ${escapeHtml(text || href)}]</span>`,
    // A heading of a message is not a heading of the page.
    heading({ tokens, depth }) {
      return `<p class="h h${depth}">${this.parser.parseInline(tokens)}</p>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

/** A fragment for the page; null if the text must be shown as it is. */
export function markdownFragment(text: string): DocumentFragment | null {
  if (text.length > CHARACTERS_MAX) return null;
  const html = marked.parse(text) as string;
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: LINKS,
    RETURN_DOM_FRAGMENT: true,
  });
}

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    if (!node.hasAttribute("href")) return;
    node.setAttribute("rel", "noopener noreferrer nofollow");
    node.setAttribute("target", "_blank");
    // The text of a link can lie about where it leads.
    node.setAttribute("title", node.getAttribute("href") ?? "");
    return;
  }
  const name = node.getAttribute("class");
  if (name !== null && !/^(?:h h[1-6]|no-image|language-[\w-]{1,40})$/.test(name)) node.removeAttribute("class");
  // So that a table or code that is too wide can be scrolled by keyboard.
  if (node.tagName === "PRE") node.setAttribute("tabindex", "0");
});

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
