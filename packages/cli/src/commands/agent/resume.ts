import type { Command } from "commander";
import { loadConfig } from "../../config.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { loadScreen, needTerminal } from "./chat.ts";
import { modelOptions } from "./model-options.ts";

interface Options {
  readonly model?: string;
  readonly here?: true;
}

export function register(program: Command): void {
  const command = program
    .command("resume")
    .summary("choose a session, and go on with it")
    .description(
      "A list of all sessions, those that were interrupted first, each with the end of its conversation: type to filter, Enter to go on with it in a chat.",
    )
    .argument("[id]", 'a session: its id, the beginning or the end of it, or "latest"; without it: choose')
    .option("--here", "with an id: work in this folder from now on, whatever folder the session names");
  modelOptions(command)
    .addHelpText("after", "\nExamples:\n  holdfast resume\n  holdfast resume 0199\n  holdfast resume latest")
    .action(async (id: string | undefined, options: Options, command: Command) => {
      if (options.here && id === undefined)
        throw new CommandError(EXIT.usage, "USAGE", "--here goes with the id of a session. Nothing was touched.");
      needTerminal("resume");
      const { runChat } = await loadScreen();
      await runChat({ ...options, resume: id ?? true }, loadConfig(command.optsWithGlobals()));
    });
}
