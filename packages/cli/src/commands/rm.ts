import type { Command } from "commander";
import { touchOutputs } from "../outputs.ts";
import { withStore } from "../store/open.ts";
import { forEach, idsFor } from "../store/several.ts";

export function register(program: Command): void {
  program
    .command("rm")
    .argument("<id...>", "sessions, by their ids, the beginnings or the ends of them")
    .summary("moves sessions to the trash")
    .description(
      'Moves sessions to the trash, where "holdfast gc" removes them after a week. Never one that somebody has open.',
    )
    .option("--json", "one JSON object for each, on a line of its own")
    .addHelpText("after", "\nExample:\n  holdfast ls --since 1h --json | jq -r .id | xargs holdfast rm")
    .action((given: readonly string[], { json }: { readonly json?: true }, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        await forEach(await idsFor(store, given, false), async (id) => {
          await store.delete(id);
          touchOutputs(store.url, id);
          process.stdout.write(json ? `${JSON.stringify({ id, trashed: true })}\n` : `${id} is in the trash.\n`);
        });
      }),
    );
}
