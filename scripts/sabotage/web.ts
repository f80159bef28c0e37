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
];
