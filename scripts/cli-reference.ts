import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Argument } from "commander";
import { settings } from "../packages/cli/src/config.ts";
import { exitCodes } from "../packages/cli/src/exit.ts";
import { makeProgram } from "../packages/cli/src/main.ts";
import { KEYS } from "../packages/cli/src/screen/help-lines.ts";
import { COMMANDS } from "../packages/cli/src/screen/input/slash-commands.ts";

/**
 * Writes the tables of docs/CLI.md out of the code: `node --conditions=holdfast-source scripts/cli-reference.ts`. A
 * test says when that is due.
 */
export const document = join(import.meta.dirname, "../docs/CLI.md");

/** The document with its tables as the code has them. */
export function withTables(text: string): string {
  const tables = {
    commands: commandTable(),
    "commands in the chat": chatCommandTable(),
    "keys in the chat": keyTable(),
    settings: settingTable(),
    "exit codes": exitCodeTable(),
  };
  return Object.entries(tables).reduce((whole, [name, table]) => {
    const begin = `<!-- ${name}: made by scripts/cli-reference.ts -->\n`;
    const end = `\n<!-- end of ${name} -->`;
    const from = whole.indexOf(begin);
    const to = whole.indexOf(end, from);
    if (from < 0 || to < 0) throw new Error(`docs/CLI.md has no place for the table of ${name}`);
    return whole.slice(0, from + begin.length) + table + whole.slice(to);
  }, text);
}

function commandTable(): string {
  const program = makeProgram();
  const help = program.createHelp();
  const commands = help.visibleCommands(program).filter((command) => command.name() !== "help");
  return table(
    ["command", "does", "options"],
    commands.map((command) => [
      code([command.name(), ...command.registeredArguments.map(termOf)].join(" ")),
      command.summary(),
      command.options
        .filter(({ hidden }) => !hidden)
        .map((option) => code(option.long ?? option.flags))
        .join(" "),
    ]),
  );
}

function chatCommandTable(): string {
  return table(
    ["command", "does"],
    COMMANDS.map(({ name, argument, does }) => [code(`/${name}${argument === "" ? "" : ` ${argument}`}`), does]),
  );
}

function keyTable(): string {
  return table(["key", "does"], KEYS);
}

function settingTable(): string {
  return table(
    ["setting", "environment", "flag", "default", "what"],
    settings.map(({ key, env, flag, envOnly, fallback, what }) => [
      envOnly ? "(not in the file)" : code(key),
      env ? code(env) : "",
      flag ? code(flag) : "",
      fallback === undefined ? "" : code(JSON.stringify(fallback)),
      what,
    ]),
  );
}

function exitCodeTable(): string {
  return table(
    ["code", "meaning"],
    exitCodes.map(([number, meaning]) => [String(number), meaning]),
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

function termOf(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function code(text: string): string {
  return `\`${text}\``;
}

if (import.meta.main) writeFileSync(document, withTables(readFileSync(document, "utf8")));
