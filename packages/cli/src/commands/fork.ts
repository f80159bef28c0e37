import type { Command } from "commander";
import { withStore } from "../store/open.ts";
import { resolveId, titleForFork } from "../store/session-id.ts";

interface Options {
  readonly at?: string;
  readonly title?: string;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("fork")
    .argument("<id>", "the session, by its id, the beginning or the end of it, or latest")
    .summary("a new session with the conversation of another")
    .description(
      "Makes a new session that begins with the conversation of another, and prints its id. The other may be in use, and is not touched.",
    )
    .option("--at <message>", "up to and with the step of this message (default: all of it)")
    .option("--title <title>", "a title of its own")
    .option("--json", "as JSON")
    .addHelpText("after", '\nExample:\n  holdfast fork latest --title "another way"')
    .action((given: string, { at, title, json }: Options, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const from = await resolveId(store, given);
        const options = {
          ...(at === undefined ? {} : { at }),
          ...(title === undefined ? await titleForFork(store, from) : { title }),
        };
        const session = await store.fork(from, options);
        await session.close();
        process.stdout.write(json ? `${JSON.stringify({ id: session.id, from })}\n` : `${session.id}\n`);
      }),
    );
}
