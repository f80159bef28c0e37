import type { Command } from "commander";
import { loadConfig } from "../config.ts";
import { loadScreen, needTerminal } from "./chat.ts";
import { modelOptions } from "./model-options.ts";

interface Options {
  readonly model?: string;
}

export function register(program: Command): void {
  const command = program
    .command("resume")
    .summary("choose a session, and go on with it")
    .description(
      "A list of all sessions, those that were interrupted first, each with the end of its conversation: type to filter, Enter to go on with it in a chat.",
    )
    .argument("[id]", 'a session: its id, the beginning or the end of it, or "latest"; without it: choose');
  modelOptions(command)
    .addHelpText("after", "\nExamples:\n  holdfast resume\n  holdfast resume 0199\n  holdfast resume latest")
    .action(async (id: string | undefined, options: Options, command: Command) => {
      needTerminal("resume");
      const { chat } = await loadScreen();
      await chat({ ...options, resume: id ?? true }, loadConfig(command.optsWithGlobals()));
    });
}
