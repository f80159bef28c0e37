import type { Command } from "commander";
import { loadConfig } from "../../config.ts";
import { loadScreen, needTerminal } from "./chat.ts";

export function register(program: Command): void {
  program
    .command("attach")
    .summary("watch and steer a session in a server")
    .description(
      "Shows a session that runs in a server, from its beginning, and follows it. You can answer questions, stop the turn and send prompts, like everyone else who is attached. Leaving never stops the turn.",
    )
    .argument("[id]", 'session id, its first or last characters, or "latest"; omit it to choose from a list')
    .option("--server <url>", "the server (default: the one that runs on this machine)")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast attach latest\n  holdfast attach 5f2a91c0 --server https://holdfast.example.org",
    )
    .action(async (id: string | undefined, options: { readonly server?: string }, command: Command) => {
      needTerminal("attach");
      const { onlyServer } = await import("../../serve/connect.ts");
      const server = options.server ?? onlyServer();
      const { runChat } = await loadScreen();
      await runChat({ server, resume: id ?? true }, loadConfig(command.optsWithGlobals()));
    });
}
