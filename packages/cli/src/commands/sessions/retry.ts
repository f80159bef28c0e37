import type { Command } from "commander";
import { withStore } from "../../store/open.ts";
import { resolveId } from "../../store/session-id.ts";

export function register(program: Command): void {
  program
    .command("retry")
    .argument("<id>", "session id, its first or last characters, or latest")
    .summary("let workers try a parked turn again")
    .description(
      "Workers park a turn that they have tried too often without progress. Afterwards they try it again, as often as a\n" +
        "new one. Runs nothing by itself. Fails if the session is open elsewhere.",
    )
    .addHelpText("after", "\nExample:\n  holdfast ls --status parked\n  holdfast retry 01a1")
    .action((given: string, _options: object, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const id = await resolveId(store, given);
        const isParked = await store.retry(id);
        process.stdout.write(isParked ? "Workers try it again.\n" : "Not parked: workers have not given up on it.\n");
      }),
    );
}
