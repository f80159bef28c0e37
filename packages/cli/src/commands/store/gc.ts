import { createInterface } from "node:readline";
import { type Command, Option } from "commander";
import type { Store } from "holdfast";
import { CommandError, EXIT } from "../../exit.ts";
import { withStore } from "../../store/open.ts";
import { type SweepResult, sweepOutputs } from "../../store/output-folders.ts";
import { nullIfUnreadable } from "../../store/usage.ts";
import { bytesWords } from "../../terminal/bytes.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { Trust } from "../../trust/trust.ts";
import { ageOf } from "../arguments.ts";
import { trashLines } from "../trash-lines.ts";

const WEEK_MS = 7 * 24 * 3600 * 1000;

interface Options {
  readonly olderThan: number;
  readonly yes?: true;
  readonly dryRun?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("gc")
    .summary("empty the trash")
    .description(
      "Permanently deletes sessions that have been in the trash for a week, leftovers of unfinished work, and saved tool outputs whose session is gone. Lists the sessions and asks first. Never touches sessions listed by holdfast ls --all.",
    )
    .addOption(
      new Option("--older-than <age>", "minimum time in the trash, such as 12h, 7d or 0s")
        .argParser(ageOf)
        .default(WEEK_MS, "7d"),
    )
    .option("-y, --yes", "delete without asking; required in scripts")
    .addOption(new Option("--dry-run", "only list what would be deleted").conflicts("yes"))
    .option("--json", "print JSON")
    .addHelpText("after", "\nExamples:\n  holdfast gc --dry-run\n  holdfast gc --older-than 0s --yes")
    .action(async (options: Options, command: Command) => {
      const done = await withStore<GcResult | null>(
        command.optsWithGlobals(),
        (store) => emptyTrash(store, options),
        () => NOTHING,
      );
      if (done === null) return;
      const { removed, outputs } = done;
      const { refused, ...swept } = outputs;
      for (const why of refused)
        process.stderr.write(
          `holdfast: ${plainLine(why)}: left alone. Saved outputs are deleted from your own folders only.\n`,
        );
      if (options.json) {
        process.stdout.write(`${jsonText({ removed, outputs: swept, ...(options.dryRun ? { dryRun: true } : {}) })}\n`);
        return;
      }
      if (options.dryRun) return;
      const kept = outputs.bytes === 0 ? "" : `, and ${bytesWords(outputs.bytes)} of saved tool outputs`;
      process.stdout.write(
        removed.length + outputs.bytes === 0
          ? "Nothing to remove.\n"
          : `Removed ${countWords(removed.length)}${kept}.\n`,
      );
    });
}

interface GcResult {
  readonly removed: readonly string[];
  readonly outputs: SweepResult;
}

const NOTHING: GcResult = { removed: [], outputs: { sessions: 0, bytes: 0, refused: [] } };

/** Null if the user said no. */
async function emptyTrash(store: Store, { olderThan, yes, dryRun, json }: Options): Promise<GcResult | null> {
  // What is deleted while the question waits is not covered by the answer.
  const before = Date.now() - olderThan;
  const old = (await store.trashed()).filter(({ trashedAt }) => Date.parse(trashedAt) <= before);
  const ids = old.map(({ id }) => id);
  if (!json && old.length > 0 && !yes) {
    const lines = trashLines(old, Date.now(), process.stdout.columns);
    process.stdout.write(`${lines.join("\n")}\n`);
  }
  if (dryRun) {
    if (!json)
      process.stdout.write(old.length === 0 ? "Nothing to remove.\n" : `Would remove ${countWords(old.length)}.\n`);
    return { ...NOTHING, removed: ids };
  }
  if (old.length > 0 && !yes && !(await isConfirmed(old.length, json === true))) {
    process.stdout.write("Nothing was removed.\n");
    return null;
  }
  const { removed } = await store.gc({ graceMs: Math.max(0, Date.now() - before) });
  const trust = new Trust(store.url);
  for (const id of removed) trust.forget(id);
  const inTrash = new Set((await store.trashed()).map(({ id }) => id));
  // A session that cannot be read counts as existing, and one in the trash can still be restored.
  const isThere = async (id: string) => inTrash.has(id) || ((await nullIfUnreadable(store.has(id))) ?? true);
  return { removed, outputs: await sweepOutputs(store.url, { isThere, removed: new Set(removed), before }) };
}

/** Anything but a clear yes means no. */
async function isConfirmed(count: number, isForScript: boolean): Promise<boolean> {
  if (isForScript || !process.stdin.isTTY || !process.stderr.isTTY)
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      `This would delete ${countWords(count)} for good. Nothing was deleted. Pass --yes to delete, or --dry-run to list them.`,
    );
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await new Promise<string>((resolve) => {
    reader.question(`Delete ${count === 1 ? "this session" : `these ${count} sessions`} for good? [y/N] `, resolve);
    // The end of the input, or Ctrl+C.
    reader.once("close", () => resolve(""));
  });
  reader.close();
  return /^y(?:es)?$/i.test(answer.trim());
}

function countWords(count: number): string {
  return count === 1 ? "1 session" : `${count} sessions`;
}
