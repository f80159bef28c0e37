import type { Command } from "commander";
import { CommandError, EXIT } from "../../exit.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";

interface Options {
  readonly once?: true;
  readonly unit?: true;
  readonly forgetDeleted?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("watch")
    .summary("keep what other agents write, as they write it")
    .description(
      "Follows the sessions of other agents on this machine, such as Claude Code, and keeps them in the store as they are written: their files and their conversations. What an agent rewrites, cuts off or deletes stays. Says so, once, on standard error and on the desktop. Changes no file of an agent.",
    )
    .option("--once", "keep what is there by now, and exit")
    .option("--unit", "print a user unit of systemd that runs it, and exit")
    .option("--forget-deleted", "move the sessions that their agents deleted to the trash, and exit")
    .option("--json", "with --forget-deleted: one JSON object per session")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast watch\n  holdfast watch --unit > ~/.config/systemd/user/holdfast-watch.service\n  systemctl --user enable --now holdfast-watch\n  holdfast watch --forget-deleted",
    )
    .action(async (options: Options, command: Command) => {
      const flags = command.optsWithGlobals();
      if ([options.once, options.unit, options.forgetDeleted].filter(Boolean).length > 1)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          "--once, --unit and --forget-deleted exclude each other. Nothing was changed.",
        );
      if (options.unit) {
        const { watchUnit } = await import("../../doctor/watch-unit.ts");
        process.stdout.write(await watchUnit(flags));
      } else if (options.forgetDeleted) {
        const { forgetDeleted } = await import("../../doctor/forget-deleted.ts");
        const gone = await forgetDeleted(flags);
        for (const each of gone)
          process.stdout.write(
            options.json
              ? `${jsonText({ ...each, trashed: true })}\n`
              : `${each.id} is in the trash (${each.agent} ${plainLine(each.session)}).\n`,
          );
        if (!options.json && gone.length === 0) process.stdout.write("No agent has deleted a session that is kept.\n");
      } else {
        const { runWatch } = await import("../../doctor/watch.ts");
        await runWatch(flags, { isOnce: options.once === true });
      }
    });
}
