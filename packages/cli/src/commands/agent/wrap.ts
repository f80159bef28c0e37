import type { Command } from "commander";
import { loadConfig } from "../../config.ts";

export function register(program: Command): void {
  program
    .command("wrap")
    .summary("make the sessions of any ACP agent survive")
    .description(
      "Runs an agent that speaks the Agent Client Protocol, and stands between it and the editor: every message is recorded before it is passed on, and nothing else changes. Sessions can be loaded after a kill of the editor, the agent or this command, also if the agent itself cannot load sessions.",
    )
    .argument("<command...>", "the agent's command and its arguments, after --")
    .addHelpText(
      "after",
      `
Example:
  holdfast wrap -- gemini --acp

For Zed, in settings.json, in place of the agent's own command:
  "agent_servers": { "Gemini": { "command": "holdfast", "args": ["wrap", "--", "gemini", "--acp"] } }

The sessions are in "holdfast ls", "show", "search" and "export" like any other. In a terminal, the agent runs without recording, so that you can sign in to it. The exit code is the agent's.`,
    )
    .action(async (given: readonly string[], _options: unknown, command: Command) => {
      const { runWrap } = await import("../../acp/run-wrap.ts");
      await runWrap(given, loadConfig(command.optsWithGlobals()));
    });
}
