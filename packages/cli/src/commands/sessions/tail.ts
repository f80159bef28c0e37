import type { Command } from "commander";
import type { Dialect, JournalRecord, Store } from "holdfast";
import { failureOf } from "../../failure.ts";
import { withStore } from "../../store/open.ts";
import { resolveId } from "../../store/session-id.ts";
import { paintFor } from "../../terminal/colour.ts";
import { recordText } from "../../terminal/json.ts";
import { recordLine } from "../../transcript/record-line.ts";
import { countOrNoneOf } from "../arguments.ts";

interface Options {
  readonly follow?: true;
  readonly lines: number;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("tail")
    .argument("<id>", "session id, its first or last characters, or latest")
    .summary("show the newest records of a session, and follow new ones")
    .description(
      "Shows the newest records of a session, one per line. With -f, keeps printing records as any process writes them, until you stop it or the session is deleted.",
    )
    .option("-f, --follow", "keep printing new records")
    .option("-n, --lines <n>", "number of existing records to show", countOrNoneOf, 20)
    .option("--json", "print the records exactly as stored in the journal")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast tail -f latest\n  holdfast tail latest -n 1000 --json | jq 'select(.kind==\"usage\")'",
    )
    .action((given: string, options: Options, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const id = await resolveId(store, given);
        const { dialect, from } = await whereToBegin(store, id, options.lines);
        const paint = paintFor(process.stdout);
        const show = (record: JournalRecord): void => {
          const line = options.json
            ? recordText(record)
            : recordLine(record, { dialect, columns: process.stdout.columns || undefined, paint });
          process.stdout.write(`${line}\n`);
        };
        const newest: JournalRecord[] = [];
        let head = 0;
        for await (const record of store.history(id, from)) {
          head = record.seq;
          newest.push(record);
          if (newest.length > options.lines) newest.shift();
        }
        for (const record of newest) show(record);
        if (!options.follow) return;
        for await (const record of store.follow(id, head)) show(record);
      }),
    );
}

/** A journal may be long, so reading starts `lines` records with entries from its end. */
async function whereToBegin(
  store: Store,
  id: string,
  lines: number,
): Promise<{ readonly dialect: Dialect<unknown> | null; readonly from: number }> {
  const { dialectNamed } = await import("../../transcript/known-dialects.ts");
  try {
    const { entries, attributes } = await store.read(id);
    // A repair or an edit is one record for several entries.
    const seqs = [...new Set(entries.map(({ seq }) => seq))].sort((one, other) => one - other);
    const from = seqs.at(-Math.max(1, lines));
    return { dialect: dialectNamed(attributes.dialect), from: from ?? 1 };
  } catch (error) {
    // Records in an unknown dialect can still be shown.
    if (failureOf(error).code !== "DIALECT_UNKNOWN") throw error;
    return { dialect: null, from: 1 };
  }
}
