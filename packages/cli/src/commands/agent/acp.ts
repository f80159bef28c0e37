import type { Command } from "commander";
import { loadConfig } from "../../config.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { modelOptions } from "./model-options.ts";

export function register(program: Command): void {
  const command = program
    .command("acp")
    .summary("run the agent inside an editor (Agent Client Protocol)")
    .description(
      "Serves the agent over standard input and output in the Agent Client Protocol, for editors such as Zed, JetBrains IDEs, Neovim and Emacs. The editor starts it. If the editor kills it, everything recorded is safe: loading the session shows the whole conversation, and what was interrupted.",
    )
    .option(
      "--server <address>",
      "run the agent in this server (holdfast serve): its turns continue when the editor is closed",
    );
  modelOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  holdfast acp --model anthropic/claude-sonnet-4-5
  holdfast acp --server http://127.0.0.1:4040

For Zed, in settings.json:
  "agent_servers": { "Holdfast": { "command": "holdfast", "args": ["acp"] } }

Standard output carries the protocol; warnings go to standard error, which editors keep in a log.`,
    )
    .action(async ({ server }: { readonly server?: string }, command: Command) => {
      if (process.stdin.isTTY)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          'An editor starts this command and talks to it; it does nothing in a terminal. To chat here, run "holdfast chat". To set up an editor, see "holdfast help acp". Nothing was touched.',
        );
      const { runAcp } = await import("../../acp/run-acp.ts");
      await runAcp(loadConfig(command.optsWithGlobals()), server);
    });
}
