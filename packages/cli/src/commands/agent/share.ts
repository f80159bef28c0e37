import { type Command, Option } from "commander";
import type { ShareOptions } from "../../serve/share.ts";
import { assertNoStore, lifetimeOf } from "../arguments.ts";

export function register(program: Command): void {
  program
    .command("share")
    .summary("share a session with a read-only link")
    .description(
      "Prints a link to one session. Anyone who opens it in a browser can read the conversation, its timeline, changes and usage, live, and nothing else. A server must be running: holdfast serve.",
    )
    .argument("[id]", "session id, its first or last characters, or latest")
    .addOption(
      new Option("--expires <time>", "how long the link works, such as 12h or 7d (default: until you revoke it)")
        .argParser(lifetimeOf)
        .conflicts(["list", "revoke"]),
    )
    .addOption(
      new Option("--redact", "replace keys, tokens and passwords in everything that the link shows").conflicts([
        "list",
        "revoke",
      ]),
    )
    .addOption(new Option("--list", "list the links: to this session, or all of them").conflicts("revoke"))
    .option("--revoke <link>", "make a link invalid, by its id in the list; open pages lose it at once")
    .option("--server <url>", "the server (default: the one that runs on this machine)")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Examples:
  holdfast share latest
  holdfast share 5f2a91c0 --expires 7d --redact
  holdfast share --list
  holdfast share --revoke 3fd29a7c01b4`,
    )
    .action(async (id: string | undefined, options: ShareOptions, command: Command) => {
      assertNoStore(command, "the server has its own. Name a server with --server");
      const { share } = await import("../../serve/share.ts");
      await share(id, options);
    });
}
