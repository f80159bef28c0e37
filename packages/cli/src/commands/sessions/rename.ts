import type { Command } from "commander";
import { CommandError, EXIT } from "../../exit.ts";
import { withStore } from "../../store/open.ts";
import { resolveId } from "../../store/session-id.ts";

export function register(program: Command): void {
  program
    .command("rename")
    .argument("<id>", "session id, its first or last characters, or latest")
    .argument("<title...>", "new title")
    .summary("rename a session")
    .description("Changes the title of a session. Fails if the session is open elsewhere.")
    .addHelpText("after", '\nExample:\n  holdfast rename latest "the flaky test"')
    .action((given: string, words: readonly string[], _options: object, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const title = words.join(" ").trim();
        if (title === "") throw new CommandError(EXIT.usage, "USAGE", "The title is empty. Nothing was touched.");
        const session = await store.resume(await resolveId(store, given));
        await session.rename(title);
        await session.close();
      }),
    );
}
