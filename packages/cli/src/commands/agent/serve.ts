import { type Command, Option } from "commander";
import { loadConfig } from "../../config.ts";
import type { ServeOptions } from "../../serve/serve.ts";
import { portOf, secondsOf } from "../arguments.ts";
import { modelOptions } from "./model-options.ts";

export function register(program: Command): void {
  const command = program
    .command("serve")
    .summary("run agents for clients that come and go")
    .description(
      "Runs agents in a server. Its turns go on when a client leaves, and any number of clients can follow them: holdfast attach, holdfast chat --server, the web page, and programs in any language over HTTP. After a crash, the next start shows what was interrupted.",
    )
    .addOption(new Option("--port <n>", "port to listen on; 0 for any free one").default(4040).argParser(portOf))
    .option("--address <ip>", "address to listen on; other than loopback, put it behind a proxy", "127.0.0.1")
    .addOption(
      list("--allow-host <name>", "a name of this server, such as the proxy's, or the address of a tunnel; repeatable"),
    )
    .addOption(list("--allow-origin <url>", "let web pages of this origin call the server; repeatable"))
    .addOption(list("--peer <url>", "another server on the same store, with the same token; repeatable"))
    .addOption(
      new Option("--grace <seconds>", "on shutdown: how long running tools and answers may take to end")
        .default(10)
        .argParser(secondsOf),
    )
    .option("--open", "open the web page in a browser")
    .option("--log", "write a line about each request to standard error")
    .option("--show-token", "print the token that clients need, and exit");
  modelOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  holdfast serve
  holdfast serve --open
  holdfast serve --allow-host holdfast.example.org --grace 60
  printf 'header = "Authorization: Bearer %s"' "$(holdfast serve --show-token)" | curl -K - http://127.0.0.1:4040/sessions

SIGTERM, SIGHUP and Ctrl+C end it: no new turns start, and running ones are handed over to the next start, which continues them by itself. Running tools and answers get --grace seconds to end first. A second Ctrl+C aborts the turns instead.`,
    )
    .action(async (options: ServeOptions & { readonly showToken?: true }, command: Command) => {
      if (options.showToken) {
        const { serverToken } = await import("../../serve/server-files.ts");
        process.stdout.write(`${serverToken()}\n`);
        return;
      }
      const { serve } = await import("../../serve/serve.ts");
      await serve(options, loadConfig(command.optsWithGlobals()));
    });
}

function list(flag: string, what: string): Option {
  return new Option(flag, what)
    .argParser((one: string, before: readonly string[]) => [...before, one])
    .default([], "none");
}
