import type { Sabotage } from "./list.ts";

const HOSTILE = ["packages/web/test/browser/hostile.test"];
const UNIT = ["packages/web/test/unit"];

const web = "packages/web/src";

/** Ways to break the promises of the web page. */
export const webSabotages: readonly Sabotage[] = [
  {
    name: "web: HTML in a message becomes part of the page",
    room: web,
    file: "text/markdown.ts",
    find: "html: ({ text }) => escapeHtml(text),",
    replace: "html: ({ text }) => text,",
    look: HOSTILE,
  },
  {
    name: "web: Markdown goes into the page without the sanitizer",
    room: web,
    file: "text/markdown.ts",
    find: "return DOMPurify.sanitize(html, {",
    replace: "return document.createRange().createContextualFragment(html) ?? DOMPurify.sanitize(html, {",
    look: HOSTILE,
  },
  {
    name: "web: characters that turn the reading direction are not shown",
    room: web,
    file: "text/visible.ts",
    find: "    INVISIBLE,\n",
    replace: '    "",\n',
    look: UNIT,
  },
  {
    name: "web: text that came before a reconnect is doubled",
    room: web,
    file: "state/live-text.ts",
    find: "const known = Math.max(0, length - event.at);",
    replace: "const known = 0;",
    look: UNIT,
  },
];
