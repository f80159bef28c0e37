import type { Command } from "commander";
import { CommandError, EXIT } from "../../exit.ts";
import { dialectNames } from "../../export/format.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";

interface Options {
  readonly dialect?: string;
  readonly copy?: string;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("import")
    .argument("<session>", "a session file or folder of another agent, or the id of a session on this machine")
    .summary("bring a session of another agent into the store")
    .description(
      'Brings a session of another agent, such as Claude Code, into the store, with the sessions of its sub-agents. "holdfast chat --resume" continues it. A second import adds what is new. Changes no file of the agent.',
    )
    .option(
      "--dialect <name>",
      `the form of the messages: ${dialectNames.join(", ")} (default: ai-sdk, which "holdfast chat" resumes)`,
    )
    .option("--copy <name>", "import it as another session, not into the one that an earlier import made")
    .option("--json", "one JSON object per session, with the whole conversation")
    .addHelpText("after", "\nExamples:\n  holdfast import ~/.claude/projects/-work\n  holdfast import 140ef976 --json")
    .action(async (given: string, options: Options, command: Command) => {
      const { copy } = options;
      const dialect = dialectNames.find((name) => name === options.dialect);
      if (options.dialect !== undefined && dialect === undefined)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          `Unknown dialect "${plainLine(options.dialect).slice(0, 40)}". Use one of ${dialectNames.join(", ")}. Nothing was imported.`,
        );
      const { importSession, openTarget, sessionsNamed } = await import("../../doctor/import.ts");
      const found = await sessionsNamed(given);
      await using opened = await openTarget(command.optsWithGlobals());
      const { Door } = await import("@holdfast/doctor");
      using door = new Door();
      for (const session of found) {
        const done = await importSession(opened, session, door, { dialect, copy });
        if (options.json) process.stdout.write(`${jsonText(done)}\n`);
        else process.stdout.write(`${textOf(done).join("\n")}\n`);
      }
    });
}

function textOf(done: {
  readonly id: string;
  readonly agent: string;
  readonly from: string;
  readonly added: number;
  readonly messages: number;
  readonly agents: readonly string[];
  readonly leftOut: readonly string[];
}): string[] {
  const children = done.agents.length === 0 ? "" : `, ${done.agents.length} sessions of sub-agents`;
  return [
    `${done.id}  ${plainLine(done.from)}`,
    `  ${done.agent}: ${done.added} of ${done.messages} messages added${children}.`,
    ...done.leftOut.map((words) => `  not carried over: ${plainLine(words)}`),
  ];
}
