import { type Command, Option } from "commander";
import { loadConfig } from "../../config.ts";
import { defined } from "../../defined.ts";
import type { Editor } from "../../editors/settings-file.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { secondsOf } from "../arguments.ts";
import { rules } from "./model-options.ts";

const RULES = ["allow", "ask", "deny"] as const;
const EDITORS: readonly Editor[] = ["zed", "jetbrains"];

interface Options {
  readonly grace: number;
  readonly direct?: true;
  readonly supervise?: string;
  readonly finish?: true;
  readonly driven?: true;
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
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
    .option("--finish", "finish a turn that was cut off, without a prompt, when its session is loaded")
    .addOption(rules("--allow", "with --finish: allow these calls without asking; repeatable"))
    .addOption(rules("--ask", "with --finish: ask about these calls; repeatable"))
    .addOption(rules("--deny", "with --finish: never allow these calls; repeatable"))
    .option("--direct", "run the agent as a child of this process, without a supervisor")
    .addOption(new Option("--supervise <socket>").hideHelp())
    .addOption(new Option("--driven").hideHelp())
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

With --finish, a turn that was cut off (its process died, or was closed) goes on when an editor loads the session: the agent is told what had happened, and that nobody has written since. If the agent dies while an editor is there, it is started again, and the same prompt is answered. Rules decide what they can about permissions in such a turn; the rest is asked in the editor. Without an editor: "holdfast run --agent … --continue --finish".

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
          ...(options.finish ? ["--finish"] : []),
          ...RULES.flatMap((kind) => options[kind].flatMap((rule) => [`--${kind}`, rule])),
        ];
        return change({ editor, action, command: given, flags, yes: yes === true, ...defined({ name, file }) });
      }
      const { grace, direct = false, supervise } = options;
      const all = command.optsWithGlobals<{ store?: string }>();
      const { runWrap } = await import("../../acp/run-wrap.ts");
      const finish = options.driven ? ("driven" as const) : options.finish ? ("on load" as const) : undefined;
      await runWrap(given, loadConfig(all), {
        ...{ graceMs: grace * 1000, direct, rules: options },
        ...defined({ supervise, finish, store: all.store }),
      });
    });
}

function assertUsage(given: readonly string[], options: Options): void {
  const { install, uninstall, name, file, yes, finish, driven } = options;
  const hasRules = RULES.some((kind) => options[kind].length > 0);
  const why =
    install && uninstall
      ? "Use --install or --uninstall, not both."
      : uninstall && given.length > 0
        ? "--uninstall takes no command."
        : hasRules && !finish && !driven
          ? "--allow, --ask and --deny require --finish: otherwise the editor asks you."
          : !install && !uninstall && (name ?? file ?? yes) !== undefined
            ? "--name, --file and --yes belong to --install and --uninstall."
            : !install && !uninstall && given.length === 0
              ? 'Which agent? Put its command after "--", for example: holdfast wrap -- gemini --acp.'
              : null;
  if (why !== null) throw new CommandError(EXIT.usage, "USAGE", `${why} Nothing was touched.`);
}
