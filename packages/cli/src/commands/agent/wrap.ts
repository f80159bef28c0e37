import { type Command, Option } from "commander";
import { loadConfig } from "../../config.ts";
import { defined } from "../../defined.ts";
import type { Editor } from "../../editors/settings-file.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { secondsOf } from "../arguments.ts";

const EDITORS: readonly Editor[] = ["zed", "jetbrains"];

interface Options {
  readonly grace: number;
  readonly direct?: true;
  readonly supervise?: string;
  readonly install?: Editor;
  readonly uninstall?: Editor;
  readonly name?: string;
  readonly file?: string;
  readonly yes?: true;
}

export function register(program: Command): void {
  program
    .command("wrap")
    .summary("make the sessions of any ACP agent survive")
    .description(
      "Runs an agent that speaks the Agent Client Protocol, and stands between it and the editor: every message is recorded before it is passed on, and nothing else changes. Sessions can be loaded after a kill of the editor, the agent or this command, also if the agent itself cannot load sessions.",
    )
    .argument("[command...]", "the agent's command and its arguments, after --")
    .addOption(
      new Option("--install <editor>", "wrap the agents in an editor's settings: shows the change and asks").choices(
        EDITORS,
      ),
    )
    .addOption(new Option("--uninstall <editor>", "restore the agents' own commands in them").choices(EDITORS))
    .option("--name <agent>", "with --install and --uninstall: only this agent; with a command: the new agent's name")
    .option("--file <path>", "with --install and --uninstall: the settings file, if it is not in its usual place")
    .option("--yes", "with --install and --uninstall: do not ask")
    .addOption(
      new Option("--grace <seconds>", "how long the agent waits for a killed editor to come back")
        .argParser(secondsOf)
        .default(3),
    )
    .option("--direct", "run the agent as a child of this process, without a supervisor")
    .addOption(new Option("--supervise <socket>").hideHelp())
    .addHelpText(
      "after",
      `
Examples:
  holdfast wrap -- gemini --acp
  holdfast wrap --grace 10 -- gemini --acp
  holdfast wrap --install zed
  holdfast wrap --install jetbrains --name Gemini -- gemini --acp
  holdfast wrap --uninstall zed --name Gemini

--install puts "holdfast wrap --" in front of the agents' commands in settings.json (Zed) or acp.json (JetBrains), keeps the rest of the file as it is, and a copy beside it. With a command, it adds an agent. --uninstall restores the commands.

An editor may kill this command without warning. A supervisor, which the editor does not know of, then refuses what the agent asks, waits for the editor to come back (--grace), and ends the agent and everything it started.

The sessions are in "holdfast ls", "show", "search" and "export" like any other. In a terminal, the agent runs without recording, so that you can sign in to it. The exit code is the agent's.`,
    )
    .action(async (given: readonly string[], options: Options, command: Command) => {
      assertUsage(given, options);
      const { install, uninstall, yes, name, file } = options;
      const editor = install ?? uninstall;
      if (editor !== undefined) {
        const { install: change } = await import("../../editors/install.ts");
        const action = install ? "install" : "uninstall";
        const flags = [
          ...(command.getOptionValueSource("grace") === "default" ? [] : ["--grace", String(options.grace)]),
          ...(options.direct ? ["--direct"] : []),
        ];
        return change({ editor, action, command: given, flags, yes: yes === true, ...defined({ name, file }) });
      }
      const { runWrap } = await import("../../acp/run-wrap.ts");
      const { grace, direct = false, supervise } = options;
      const all = command.optsWithGlobals<{ store?: string }>();
      await runWrap(given, loadConfig(all), {
        graceMs: grace * 1000,
        direct,
        ...defined({ supervise, store: all.store }),
      });
    });
}

function assertUsage(given: readonly string[], { install, uninstall, name, file, yes }: Options): void {
  const why =
    install && uninstall
      ? "Use --install or --uninstall, not both."
      : uninstall && given.length > 0
        ? "--uninstall takes no command."
        : !install && !uninstall && (name ?? file ?? yes) !== undefined
          ? "--name, --file and --yes belong to --install and --uninstall."
          : !install && !uninstall && given.length === 0
            ? 'Which agent? Put its command after "--", for example: holdfast wrap -- gemini --acp.'
            : null;
  if (why !== null) throw new CommandError(EXIT.usage, "USAGE", `${why} Nothing was touched.`);
}
