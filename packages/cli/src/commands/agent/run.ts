import { type Command, Option } from "commander";
import { loadConfig } from "../../config.ts";
import { defined } from "../../defined.ts";
import { CommandError, EXIT } from "../../exit.ts";
import type { RunOptions } from "../../run/run.ts";
import { modelOptions } from "./model-options.ts";

type Options = Omit<RunOptions, "prompt">;

export function register(program: Command): void {
  const command = program
    .command("run")
    .summary("one turn of the agent, for scripts")
    .description(
      "Gives the agent one prompt, and ends when its turn has ended. The answer goes to standard output, everything else to standard error. Whatever happens to this process, what was recorded stays, and the turn can be finished.",
    )
    .argument("[prompt]", 'what is to be done; without it, or with "-", it is read from standard input')
    .addOption(
      new Option("--resume <id>", "in this session: its id, the beginning or the end of it, or latest").conflicts(
        "continue",
      ),
    )
    .option("--here", "with --resume: work in this folder from now on, whatever folder the session names")
    .option("--continue", "in the latest session of this folder")
    .option("--finish", "finish the turn that was interrupted, instead of giving a prompt")
    .option(
      "--stop-processes",
      "with --finish: stop the tools' processes that outlived their agent; else they are waited for",
    )
    .option("--title <title>", "what a new session is called")
    .option("--json", "every event as a line of JSON, on standard output")
    .option("--quiet", "only the answer, and what went wrong");
  modelOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  holdfast run "count words in src to words.md" --allow 'write(words.md)'
  git diff | holdfast run --allow 'write(review.md)'
  holdfast run --continue --finish --allow 'write(words.md)'
  holdfast run --json "read README.md" | jq -r 'select(.type == "text").text'

Without a terminal nobody can be asked: a call that no rule allows is denied, and the flag that would allow it is named. Rules that are given here are for this run: --finish wants them again.`,
    )
    .action(async (prompt: string | undefined, options: Options, command: Command) => {
      if (options.finish && prompt !== undefined)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          "--finish goes on with the prompt that was interrupted: give no other. Nothing was touched.",
        );
      if (options.title !== undefined && (options.resume !== undefined || options.continue || options.finish))
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          "--title is for a new session. Another title for this one: holdfast rename <id> <title>. Nothing was touched.",
        );
      if (options.here && options.resume === undefined)
        throw new CommandError(EXIT.usage, "USAGE", "--here goes with --resume. Nothing was touched.");
      if (options.stopProcesses && !options.finish)
        throw new CommandError(EXIT.usage, "USAGE", "--stop-processes goes with --finish. Nothing was touched.");
      const { run } = await import("../../run/run.ts");
      await run({ ...options, ...defined({ prompt }) }, loadConfig(command.optsWithGlobals()));
    });
}
