import type { Command } from "commander";
import { defined } from "../../defined.ts";
import { EXIT } from "../../exit.ts";
import { damageLines, emptyLines, verifiedHealth } from "../../store/damage.ts";
import { forEach, idsFor } from "../../store/for-each-session.ts";
import { withStore } from "../../store/open.ts";
import { jsonText } from "../../terminal/json.ts";
import { progressOn } from "../../terminal/progress.ts";

interface Options {
  readonly all?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("repair")
    .argument("[id...]", "session ids, or their first or last characters (default: all)")
    .summary("repair sessions that a crash left half written")
    .description(
      "Repairs sessions as opening them would: moves an unacknowledged end into a quarantine file beside the journal, so that the session can be appended to. No byte is deleted. Corrupt parts stay in place and readers skip them; exit code 1 if there are any.",
    )
    .option("--all", "all sessions")
    .option("--json", "one JSON object per damaged session, one per line")
    .addHelpText("after", "\nExample:\n  holdfast repair latest")
    .action((given: readonly string[], { all, json }: Options, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const ids = await idsFor(store, given, all === true || given.length === 0);
        const progress = progressOn(process.stderr, ids.length);
        let done = 0;
        let whole = 0;
        let healed = 0;
        let corrupt = 0;
        const failed = await forEach(ids, async (id) => {
          progress.show(done++, "sessions read");
          const before = await store.verify(id);
          if (verifiedHealth(before) === "whole") {
            whole++;
            return;
          }
          // Under the lease, so the state is current.
          const { cutBytes, quarantine } = before.cutBytes > 0 ? await store.heal(id) : before;
          const found = { ...before, cutBytes, ...defined({ quarantine }) };
          if (cutBytes > 0) healed++;
          const isCorrupt = verifiedHealth(before) === "corrupt";
          if (isCorrupt) corrupt++;
          progress.clear();
          if (json) {
            const { damaged, missing } = found;
            process.stdout.write(
              `${jsonText({ id, cutBytes, quarantine: found.quarantine ?? null, damaged, missing })}\n`,
            );
          } else
            process.stdout.write(
              `${[id, ...[...damageLines(found, true), ...emptyLines(found)].map((line) => `  ${line}`)].join("\n")}\n`,
            );
        });
        progress.clear();
        if (corrupt > 0) process.exitCode = EXIT.failed;
        if (json) return;
        const parts = [`${whole} whole`];
        if (healed > 0) parts.push(`${healed} repaired`);
        if (corrupt > 0) parts.push(`${corrupt} with damage that cannot be repaired`);
        if (failed > 0) parts.push(`${failed} could not be opened`);
        process.stdout.write(`${ids.length} ${ids.length === 1 ? "session" : "sessions"}: ${parts.join(", ")}.\n`);
      }),
    );
}
