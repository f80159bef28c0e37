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
    .argument("[id...]", "session ids, or their first or last characters")
    .summary("compress the old parts of sessions")
    .description(
      "Compresses the part of a session before its last compaction or clear. Nothing is lost: you can still read, search and export it. Fails if the session is open elsewhere.",
    )
    .option("--all", "all sessions that are not open")
    .option("--json", "one JSON object per session, one per line")
    .addHelpText("after", "\nExample:\n  holdfast pack --all")
    .action(async (given: readonly string[], { all, json }: Options, command: Command) => {
      if (given.length === 0 && !all)
        throw new CommandError(EXIT.usage, "USAGE", "Give a session id or --all. Nothing was touched.");
      let before = 0;
      let after = 0;
      let segments = 0;
      const failed = await withStore(
        command.optsWithGlobals(),
        async (store, _config, { capabilities }) => {
          if (!capabilities.pack) throw cannotPack(placeOf(store));
          return forEach(await idsFor(store, given, all === true), async (id) => {
            const packed = await store.pack(id).catch((error: unknown) => {
              // --all means the sessions that are not in use.
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
      if (segments > 0) process.stdout.write(`Packed ${what}: ${bytesWords(before)} is now ${bytesWords(after)}.\n`);
      else if (failed === 0) process.stdout.write("Nothing to pack.\n");
    });
}

/** Reported once, not per session. */
function cannotPack(place: string): CommandError {
  const message = `Only a folder store can be packed, and ${place} is not one. Nothing was touched. Copy the sessions to a folder and pack them there: holdfast copy <from> <to> --all`;
  return new CommandError(EXIT.store, "NOT_SUPPORTED", message);
}
