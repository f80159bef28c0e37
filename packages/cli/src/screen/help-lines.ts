import { COMMANDS } from "./input/slash-commands.ts";
import { BLANK, cut, type Line, span } from "./lines/line.ts";

/** The keys of the chat, for `/help` and for docs/CLI.md. */
export const KEYS: readonly (readonly [string, string])[] = [
  ["Enter", "send; queue while a turn is running"],
  ["Alt+Enter, \\ Enter", "new line"],
  ["Esc, Ctrl+C", "stop the turn; its output is saved"],
  ["Esc Esc", "clear the line; on an empty one, rewind to a prompt"],
  ["Ctrl+C again, Ctrl+D", "quit; everything is saved"],
  ["↑ ↓", "earlier prompts of this folder; edit a queued prompt"],
  ["Ctrl+R", "search earlier prompts of this folder"],
  ["Tab", "complete a command, or a file after @"],
  ["!command", "run a command yourself; its output joins your next prompt"],
  ["Ctrl+G", "edit the prompt in $EDITOR"],
  ["Ctrl+O", "show pasted text in full, to edit it"],
  ["Ctrl+L", "redraw the screen"],
  ["Ctrl+Z", "suspend to the shell; fg resumes"],
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
