import type { Command } from "commander";
import { CommandError, EXIT } from "../../exit.ts";
import { failureOf } from "../../failure.ts";
import { forEach, idsFor } from "../../store/for-each-session.ts";
import { noStore, withStore } from "../../store/open.ts";
import { placeOf } from "../../store/session-id.ts";
import { bytesWords } from "../../terminal/bytes.ts";
import { jsonText } from "../../terminal/json.ts";

interface Options {
  readonly all?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("pack")
    .argument("[id...]", "sessions, by their ids, the beginnings or the ends of them")
    .summary("compresses the old parts of sessions")
    .description(
      "Compresses what lies before the current conversation of a session (before its last compaction or clear). Nothing is lost: it is read, searched and exported as before. Not while somebody has it open.",
    )
    .option("--all", "all that nobody has open")
    .option("--json", "one JSON object for each, on a line of its own")
    .addHelpText("after", "\nExample:\n  holdfast pack --all")
    .action(async (given: readonly string[], { all, json }: Options, command: Command) => {
      if (given.length === 0 && !all)
        throw new CommandError(EXIT.usage, "USAGE", "Give the id of a session, or --all. Nothing was touched.");
      let before = 0;
      let after = 0;
      let segments = 0;
      const failed = await withStore(
        command.optsWithGlobals(),
        async (store, _config, { capabilities }) => {
          if (!capabilities.pack) throw cannotPack(placeOf(store));
          return forEach(await idsFor(store, given, all === true), async (id) => {
            const packed = await store.pack(id).catch((error: unknown) => {
              // One that is in use is none of those that are meant by all.
              if (all && failureOf(error).code === "SESSION_BUSY") return null;
              throw error;
            });
            if (!packed) return;
            before += packed.bytesBefore;
            after += packed.bytesAfter;
            segments += packed.segments;
            if (json) process.stdout.write(`${jsonText({ id, ...packed })}\n`);
          });
        },
        all ? () => 0 : noStore,
      );
      if (json) return;
      const what = segments === 1 ? "1 segment" : `${segments} segments`;
      if (segments > 0) process.stdout.write(`Packed ${what}: ${bytesWords(before)} are ${bytesWords(after)} now.\n`);
      else if (failed === 0) process.stdout.write("Nothing to pack.\n");
    });
}

/** Once, and not for each session of it. */
function cannotPack(place: string): CommandError {
  const message = `Only a folder store packs, and ${place} is none. Nothing was touched. Copy sessions to a folder, and pack them there: holdfast copy <from> <to> --all`;
  return new CommandError(EXIT.store, "NOT_SUPPORTED", message);
}
