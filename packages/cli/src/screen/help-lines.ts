import { COMMANDS } from "./input/slash-commands.ts";
import { BLANK, cut, type Line, span } from "./lines/line.ts";

/** The keys of the chat, for `/help` and for docs/CLI.md. */
export const KEYS: readonly (readonly [string, string])[] = [
  ["Enter", "send; while it works: queue"],
  ["Alt+Enter, \\ Enter", "a new line"],
  ["Esc, Ctrl+C", "stop the turn; what was produced stays"],
  ["Ctrl+C again, Ctrl+D", "leave; everything is kept"],
  ["↑ ↓", "what you sent before; take a queued prompt back"],
  ["Tab", "complete a command"],
  ["Ctrl+L", "draw the screen anew"],
  ["Ctrl+Z", "to the shell; fg comes back"],
];

/** What `/help` shows. */
export function helpLines(columns: number): Line[] {
  const row = (name: string, does: string): Line =>
    cut([span(`  ${name.padEnd(22)}`, { colour: "cyan" }), span(does)], columns);
  return [
    BLANK,
    ...COMMANDS.map(({ name, argument, does }) => row(`/${name}${argument === "" ? "" : ` ${argument}`}`, does)),
    BLANK,
    ...KEYS.map(([name, does]) => row(name, does)),
  ];
}
