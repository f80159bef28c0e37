import type { Command } from "commander";
import { withStore } from "../../store/open.ts";
import { sweepOutputs } from "../../store/output-folders.ts";
import { nullIfUnreadable } from "../../store/usage.ts";
import { bytesWords } from "../../terminal/bytes.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { Trust } from "../../trust/trust.ts";
import { ageOf } from "../arguments.ts";

const WEEK_MS = 7 * 24 * 3600 * 1000;

interface Options {
  readonly olderThan: number;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("gc")
    .summary("empty the trash")
    .description(
      "Permanently deletes sessions that have been in the trash for a week, leftovers of unfinished work, and saved tool outputs whose session is gone. Never touches sessions listed by holdfast ls --all.",
    )
    .option("--older-than <age>", "minimum time in the trash, such as 12h, 7d or 0s (default: 7d)", ageOf, WEEK_MS)
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample:\n  holdfast gc --older-than 0s")
    .action(async ({ olderThan: graceMs, json }: Options, command: Command) => {
      const { removed, outputs } = await withStore(
        command.optsWithGlobals(),
        async (store) => {
          const { removed } = await store.gc({ graceMs });
          const trust = new Trust(store.url);
          for (const id of removed) trust.forget(id);
          // A session that cannot be read counts as existing.
          const isThere = async (id: string) => (await nullIfUnreadable(store.has(id))) ?? true;
          const before = Date.now() - graceMs;
          return { removed, outputs: await sweepOutputs(store.url, { isThere, removed: new Set(removed), before }) };
        },
        () => ({ removed: [], outputs: { sessions: 0, bytes: 0, refused: [] } }),
      );
      const { refused, ...swept } = outputs;
      for (const why of refused)
        process.stderr.write(
          `holdfast: ${plainLine(why)}: left alone. Saved outputs are deleted from your own folders only.\n`,
        );
      if (json) {
        process.stdout.write(`${jsonText({ removed, outputs: swept })}\n`);
        return;
      }
      const sessions = removed.length === 1 ? "1 session" : `${removed.length} sessions`;
      const kept = outputs.bytes === 0 ? "" : `, and ${bytesWords(outputs.bytes)} of saved tool outputs`;
      process.stdout.write(
        removed.length + outputs.bytes === 0 ? "Nothing to remove.\n" : `Removed ${sessions}${kept}.\n`,
      );
    });
}
