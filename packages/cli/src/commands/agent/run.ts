import { type Command, Option } from "commander";
import { loadConfig } from "../../config.ts";
import { defined } from "../../defined.ts";
import { CommandError, EXIT } from "../../exit.ts";
import type { RunOptions } from "../../run/run.ts";
import { typedCommand } from "../../typed-command.ts";
import { modelOptions, TAKE_OVER } from "./model-options.ts";

type Options = Omit<RunOptions, "prompt"> & { readonly agent?: string; readonly retry?: true };

/** What only our own agent has. */
function assertOfOtherAgents({ here, takeOver, stopProcesses, title }: Options, command: Command): void {
  const isSet = (name: string): boolean => command.getOptionValueSource(name) === "cli";
  const own = [
    ...(here ? ["--here"] : []),
    ...(takeOver ? ["--take-over"] : []),
    ...(stopProcesses ? ["--stop-processes"] : []),
    ...(title === undefined ? [] : ["--title"]),
    ...(isSet("model") ? ["--model"] : []),
    ...(isSet("baseUrl") ? ["--base-url"] : []),
    ...(isSet("windowTokens") ? ["--window-tokens"] : []),
  ];
  if (own.length === 0) return;
  const message = `${own.join(", ")} cannot be used with --agent: that agent has its own settings. Nothing was touched.`;
  throw new CommandError(EXIT.usage, "USAGE", message);
}

export function register(program: Command): void {
  const command = program
    .command("run")
    .summary("run one agent turn, for scripts")
    .description(
      "Gives the agent one prompt and exits when the turn ends. The answer goes to standard output, everything else to standard error. If this process crashes, everything recorded is safe and --finish completes the turn.",
    )
    .argument("[prompt]", 'the prompt; omit it or pass "-" to read it from standard input')
    .addOption(
      new Option("-r, --resume <id>", "resume this session: its id, its first or last characters, or latest").conflicts(
        "continue",
      ),
    )
    .option("--here", "with --resume: work in the current folder from now on, not in the session's recorded folder")
    .option("--take-over", TAKE_OVER)
    .option("-c, --continue", "resume the latest session in this folder")
    .option("--stdin", "append standard input to the prompt")
    .option("--finish", "finish the interrupted turn instead of sending a prompt")
    .option(
      "--stop-processes",
      "with --finish: stop tool processes that outlived the agent instead of waiting for them",
    )
    .option("--agent <command>", "run this ACP agent instead, such as 'gemini --acp', and restart it when it dies")
    .option("--retry", "with --agent and --finish: also try a turn again that was parked after too many restarts")
    .option("--title <title>", "title for a new session")
    .option("--json", "print every event on standard output as one line of JSON")
    .option("--quiet", "print only the answer and errors");
  modelOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  holdfast run "count words in src to words.md" --allow 'write(words.md)'
  git diff | holdfast run --stdin "review this change"
  holdfast run --continue --finish --allow 'write(words.md)'
  holdfast run --agent 'gemini --acp' "fix the failing test" --allow 'shell(npm test)' --allow 'edit(src/**)'
  holdfast run --agent 'gemini --acp' --continue --finish --allow 'shell(npm test)' --allow 'edit(src/**)'
  holdfast run --json "read README.md" | jq -r 'select(.type == "text").text'

Without a terminal, a call that no rule allows is denied, and a warning names the flag that would allow it. Permission flags apply to this run only: pass them again with --finish.`,
    )
    .action(async (prompt: string | undefined, options: Options, command: Command) => {
      if (options.finish && prompt !== undefined)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          "--finish continues the interrupted prompt and takes no other. Nothing was touched.",
        );
      if (options.title !== undefined && (options.resume !== undefined || options.continue || options.finish))
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          `--title is for a new session. Nothing was touched. To rename this one: "${typedCommand("rename <id> <title>")}".`,
        );
      if (options.here && options.resume === undefined)
        throw new CommandError(EXIT.usage, "USAGE", "--here requires --resume. Nothing was touched.");
      if (options.takeOver && options.resume === undefined)
        throw new CommandError(EXIT.usage, "USAGE", "--take-over requires --resume. Nothing was touched.");
      if (options.stopProcesses && !options.finish)
        throw new CommandError(EXIT.usage, "USAGE", "--stop-processes requires --finish. Nothing was touched.");
      if (options.stdin && (options.finish || prompt === undefined || prompt === "-"))
        throw new CommandError(EXIT.usage, "USAGE", "--stdin requires a prompt to append to. Nothing was touched.");
      if (options.retry && (options.agent === undefined || !options.finish))
        throw new CommandError(EXIT.usage, "USAGE", "--retry requires --agent and --finish. Nothing was touched.");
      if (options.agent !== undefined) {
        assertOfOtherAgents(options, command);
        const { runAgent } = await import("../../run/run-agent.ts");
        const { agentWords } = await import("../../acp/agent-words.ts");
        const all = command.optsWithGlobals<{ store?: string }>();
        const given = { ...options, ...defined({ prompt, store: all.store }) };
        return runAgent(agentWords(options.agent), given, loadConfig(all));
      }
      const { run } = await import("../../run/run.ts");
      await run({ ...options, ...defined({ prompt }) }, loadConfig(command.optsWithGlobals()));
    });
}
