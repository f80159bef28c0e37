import type { Sabotage } from "./list.ts";

const UNIT = ["packages/web/test/unit"];

const web = "packages/web/src";

/** Ways to break the promises of the web page. */
export const webSabotages: readonly Sabotage[] = [
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
  {
    name: "web: a jump asks for the conversation page by page",
    room: web,
    file: "state/item-pages.ts",
    find: "{ around, near, limit: FIRST_PAGE }",
    replace: "{ around, near, limit: 1 }",
    look: UNIT,
  },
  {
    name: "web: a link in a message may lead anywhere, also to a script",
    room: web,
    file: "text/markdown.ts",
    find: "const LINKS = /^(?:https?:|mailto:)/i;",
    replace: "const LINKS = /^/i;",
    look: ["packages/web/test/browser/hostile.test"],
  },
];
