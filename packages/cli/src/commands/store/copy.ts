import type { Command } from "commander";
import type { CopyResult } from "../../copy/copy.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { withFamilies } from "../../store/children.ts";
import { forEach, idsFor } from "../../store/for-each-session.ts";
import { placeOf } from "../../store/session-id.ts";
import { jsonText } from "../../terminal/json.ts";
import { progressOn } from "../../terminal/progress.ts";
import { assertNoStore } from "../arguments.ts";

interface Options {
  readonly all?: true;
  readonly move?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("copy")
    .argument("<from>", "address of the source store")
    .argument("<to>", "address of the target store")
    .argument("[id...]", "session ids, or their first or last characters")
    .summary("copy or move sessions to another store")
    .description(
      'Copies sessions between any two stores: a folder, "sqlite:" and a file, or a PostgreSQL database. Records are copied byte for byte, and each copy is read back and compared. Each session is copied entirely or not at all; after an interruption, run the same command again to continue. Sessions of sub-agents are copied with their parent. A session in use is copied up to its current record. Full tool outputs, stored beside the store, are not copied.',
    )
    .option("--all", "all sessions")
    .option("--move", "move each original to the trash once its copy is verified, unless it is in use")
    .option("--json", "one JSON object per session, one per line")
    .addHelpText(
      "after",
      '\nExamples:\n  holdfast copy ~/.local/share/holdfast sqlite:sessions.db --all\n  PGPASSWORD=… holdfast copy . "postgres://worker@db/agents" latest --move',
    )
    .action((from: string, to: string, given: readonly string[], options: Options, command: Command) => {
      assertNoStore(command, "give both stores as arguments");
      return copy(from, to, given, options);
    });
}

async function copy(from: string, to: string, given: readonly string[], options: Options): Promise<void> {
  if (given.length === 0 && !options.all)
    throw new CommandError(EXIT.usage, "USAGE", "Give session ids or --all. Nothing was touched.");
  const { isOneFile, isSameStore, openSource, openTarget } = await import("../../copy/stores.ts");
  const { copySession } = await import("../../copy/copy.ts");
  if (isOneFile(from, to)) throw sameStore();
  await using source = await openSource(from);
  const named = await idsFor(source.store, given, options.all === true);
  const ids = options.all ? named : await withFamilies(source.store, named);
  // A mistyped source may be an empty store: that must not look like a successful copy.
  if (ids.length === 0)
    throw new CommandError(
      EXIT.notFound,
      "SESSION_NOT_FOUND",
      `There are no sessions in ${placeOf(source.store)}. Nothing was copied.`,
    );
  await using target = await openTarget(to);
  if (await isSameStore(source.journals, target.journals, ids)) throw sameStore();
  const { nullIfUnreadable } = await import("../../store/usage.ts");
  // For progress only: the list may fail because of one unreadable session, and the others are still copied.
  const listed = await nullIfUnreadable(source.journals.list());
  const heads = new Map(listed?.sessions.map(({ id, head }) => [id, head]));
  const total = ids.reduce((sum, id) => sum + (heads.get(id) ?? 0), 0);
  const progress = progressOn(process.stderr, total);
  let done = 0;
  let number = 0;
  const failed = await forEach(ids, async (id) => {
    const words = `records, session ${++number} of ${ids.length}`;
    progress.show(done, words);
    try {
      const found = await copySession(source.journals, target.journals, id, {
        move: options.move === true,
        onProgress: (records) => progress.show(done + records, words),
      });
      progress.clear();
      process.stdout.write(options.json ? `${jsonText(found)}\n` : `${wordsOf(found).join("\n")}\n`);
      if (found.kept) process.exitCode = found.kept === "damaged" ? EXIT.failed : EXIT.busy;
    } finally {
      progress.clear();
      done += heads.get(id) ?? 0;
    }
  });
  if (options.json || ids.length === 1) return;
  const words = `${ids.length - failed} of ${ids.length} ${ids.length === 1 ? "session" : "sessions"}`;
  process.stdout.write(`${words} copied to ${placeOf(target.store)}, and verified.\n`);
}

function sameStore(): CommandError {
  return new CommandError(EXIT.usage, "USAGE", "Both addresses are the same store. Nothing was touched.");
}

const DONE: Readonly<Record<CopyResult["outcome"], string>> = {
  copied: "copied",
  completed: "copied again, because the copy had fewer",
  there: "already there",
};

const KEPT: Readonly<Record<NonNullable<CopyResult["kept"]>, string>> = {
  "in use": "The original was not removed: it is in use. Copy it again when it is free.",
  changed: "The original was not removed: it has grown since the copy. Copy it again.",
  damaged: "The original was not removed: it is damaged, and may hold data that the copy lacks.",
};

function wordsOf({ id, outcome, records, head, live, gaps, moved, kept }: CopyResult): string[] {
  const lines = [`${id}: ${records} ${records === 1 ? "record" : "records"} ${DONE[outcome]}, verified.`];
  if (live) lines.push(`  It is in use: the copy ends with record ${head}.`);
  for (const { from, to } of gaps)
    lines.push(
      `  ${from === to ? `Record ${from}` : `Records ${from} to ${to}`} could not be read, and cannot be copied.`,
    );
  if (moved) lines.push("  The original is in the trash.");
  if (kept) lines.push(`  ${KEPT[kept]}`);
  return lines;
}
