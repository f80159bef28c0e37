import { basename, resolve, sep } from "node:path";
import { createInterface } from "node:readline/promises";
import { diffRowText, lineDiff } from "@holdfast/server/internal/edits";
import { credentials } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";
import { plain, plainLine } from "../terminal/plain.ts";
import { addAgent, type Change, type Launch, unwrapAgents, wrapAgents } from "./agent-entries.ts";
import { type Editor, readSettings, settingsPath, splitMark, writeSettings } from "./settings-file.ts";

export interface InstallOptions {
  readonly editor: Editor;
  readonly action: "install" | "uninstall";
  /** An agent to add; empty to change those that are there. */
  readonly command: readonly string[];
  /** Options of `wrap` for the agents. */
  readonly flags: readonly string[];
  readonly name?: string;
  readonly file?: string;
  readonly yes: boolean;
}

const TITLES: Readonly<Record<Editor, string>> = { zed: "Zed", jetbrains: "JetBrains IDEs" };

/** Shows the change in the editor's settings, asks, keeps a copy, and writes. */
export async function install(options: InstallOptions): Promise<void> {
  const { editor, yes } = options;
  const found = readSettings(options.file === undefined ? settingsPath(editor) : resolve(options.file));
  const { mark, body } = splitMark(found.text);
  const change = changeOf(options, body);
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  for (const { name, why } of change.kept) say(`"${plainLine(name)}" stays as it is: ${plainLine(why)}.`);
  if (change.changed.length === 0) return say(nothingToDo(options, found.path, change));
  say(`${plainLine(found.path)}:`);
  for (const row of lineDiff(body, change.text)) say(credentials(plain(diffRowText(row))));
  if (!yes) {
    if (!process.stdin.isTTY)
      throw new CommandError(
        EXIT.usage,
        "USAGE",
        "There is no terminal to ask in. Use --yes to make this change without a question. Nothing was changed.",
      );
    if (!(await confirm("Make this change? [y/N] "))) return say("Nothing was changed.");
  }
  const backup = writeSettings(found, `${mark}${change.text}`, new Date());
  if (backup !== null) say(`The file as it was: ${plainLine(backup)}`);
  const names = change.changed.map((name) => `"${plainLine(name)}"`).join(", ");
  say(
    options.action === "install"
      ? `Done. From its next start in ${TITLES[editor]}, sessions of ${names} survive. To undo it: holdfast wrap --uninstall ${editor}`
      : `Done. From its next start in ${TITLES[editor]}, ${names} runs without Holdfast. Its recorded sessions stay in "holdfast ls".`,
  );
}

function changeOf({ editor, action, command, name, flags }: InstallOptions, text: string): Change {
  if (action === "uninstall") return unwrapAgents(text, name ?? null);
  const launch = thisProgram(flags);
  if (command.length === 0) return wrapAgents(text, launch, name ?? null);
  const [program = ""] = command;
  return addAgent(text, launch, { name: name ?? basename(program), command, isTyped: editor === "zed" });
}

function nothingToDo({ editor, action }: InstallOptions, path: string, { kept }: Change): string {
  if (action === "uninstall") return `Nothing to do: no agent in ${plainLine(path)} is wrapped.`;
  if (kept.length > 0) return "Nothing to do.";
  return `There is no agent in ${plainLine(path)}. To add one: holdfast wrap --install ${editor} -- <agent command>`;
}

/** By absolute paths, because an editor may have another PATH and another Node than this shell. */
function thisProgram(flags: readonly string[]): Launch {
  const script = resolve(process.argv[1] ?? "");
  if (script.includes(`${sep}_npx${sep}`))
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      "This copy of Holdfast is in the cache of npx, which may be emptied at any time. Install Holdfast first, then run this again. Nothing was changed.",
    );
  return { command: process.execPath, args: [script], flags };
}

async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(?:es)?$/i.test((await lines.question(question)).trim());
  } finally {
    lines.close();
  }
}
