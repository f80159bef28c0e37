import type { Command } from "commander";
import { loadConfig } from "../../config.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { loadScreen, needTerminal } from "./chat.ts";
import { modelOptions } from "./model-options.ts";

interface Options {
  readonly model?: string;
  readonly here?: true;
  readonly takeOver?: true;
}

export function register(program: Command): void {
  const command = program
    .command("resume")
    .summary("choose a session and resume it")
    .description(
      "Lists all sessions, interrupted ones first, each with the end of its conversation. Type to filter; press Enter to resume the session in a chat.",
    )
    .argument("[id]", 'session id, its first or last characters, or "latest"; omit it to choose from a list')
    .option("--here", "with an id: work in the current folder from now on, not in the session's recorded folder")
    .option("--take-over", "with an id: continue a session that another program wrote");
  modelOptions(command)
    .addHelpText("after", "\nExamples:\n  holdfast resume\n  holdfast resume 5f2a91c0\n  holdfast resume latest")
    .action(async (id: string | undefined, options: Options, command: Command) => {
      if (options.here && id === undefined)
        throw new CommandError(EXIT.usage, "USAGE", "--here requires a session id. Nothing was touched.");
      if (options.takeOver && id === undefined)
        throw new CommandError(EXIT.usage, "USAGE", "--take-over requires a session id. Nothing was touched.");
      needTerminal("resume");
      const { runChat } = await loadScreen();
      await runChat({ ...options, resume: id ?? true }, loadConfig(command.optsWithGlobals()));
    });
}
