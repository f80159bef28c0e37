import type { Command } from "commander";
import { CommandError, EXIT } from "../../exit.ts";
import { withStore } from "../../store/open.ts";
import { resolveId } from "../../store/session-id.ts";

export function register(program: Command): void {
  program
    .command("rename")
    .argument("<id>", "the session, by its id, the beginning or the end of it, or latest")
    .argument("<title...>", "its new title")
    .summary("gives a session another title")
    .description("Gives a session another title. Not while somebody has it open.")
    .addHelpText("after", '\nExample:\n  holdfast rename latest "the flaky test"')
    .action((given: string, words: readonly string[], _options: object, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const title = words.join(" ").trim();
        if (title === "") throw new CommandError(EXIT.usage, "USAGE", "A title is not empty. Nothing was touched.");
        const session = await store.resume(await resolveId(store, given));
        await session.rename(title);
        await session.close();
      }),
    );
}
