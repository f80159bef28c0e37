import type { Command } from "commander";
import { withStore } from "../../store/open.ts";
import { placeOf } from "../../store/session-id.ts";
import { trashIn } from "../../store/trash.ts";
import { jsonText } from "../../terminal/json.ts";
import { trashLines } from "../trash-lines.ts";

interface Options {
  readonly all?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("trash")
    .summary("list deleted sessions")
    .description(
      'Lists deleted sessions, the last one deleted first. "holdfast restore" brings one back. "holdfast gc" deletes those that have been here for a week.',
    )
    .option("--all", "also the sessions of sub-agents, which come back with their parents")
    .option("--json", "one JSON object per session, one per line")
    .addHelpText("after", "\nExamples:\n  holdfast trash\n  holdfast restore latest")
    .action(({ all, json }: Options, command: Command) =>
      withStore(
        command.optsWithGlobals(),
        async (store) => {
          const trash = await trashIn(store);
          const ids = new Set(trash.map(({ id }) => id));
          const shown = trash.filter(({ parent }) => all || json || !parent || !ids.has(parent.session));
          if (json) for (const session of shown) process.stdout.write(`${jsonText(session)}\n`);
          else if (shown.length === 0) process.stdout.write(`The trash of ${placeOf(store)} is empty.\n`);
          else process.stdout.write(`${trashLines(shown, Date.now(), process.stdout.columns).join("\n")}\n`);
        },
        (place) => void (json || process.stdout.write(`The trash is empty: there is no store in ${place} yet.\n`)),
      ),
    );
}
