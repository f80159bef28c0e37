import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { CommandError, EXIT } from "../../exit.ts";
import { withStore } from "../../store/open.ts";
import { resolveId } from "../../store/session-id.ts";
import { paintFor } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { diffLines } from "../../transcript/terminal-lines.ts";
import { callWords } from "../../transcript/words.ts";

interface Options {
  readonly yes?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("restore-files")
    .argument("<id>", "session id, its first or last characters, or latest")
    .summary("put back files that a killed call changed")
    .description(
      "For a session that was interrupted in a call whose outcome is unknown: puts the files of its folder back as they were noted before the call began. Shows what would change, and asks. Files that were not there before stay, and so does everything that was not noted. Refused while a process of the dead agent runs. The turn stays interrupted: finish it afterwards.",
    )
    .option("--yes", "do not ask")
    .option("--json", "print one JSON object: call, restored, left")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast restore-files latest\n  holdfast restore-files 5f2a91c0 --yes --json",
    )
    .action((given: string, { yes, json }: Options, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const { withFilesToRestore } = await import("../../evidence/restore-files.ts");
        const id = await resolveId(store, given);
        await withFilesToRestore(store, id, async (found) => {
          const say = (line: string): void => void (json ? process.stderr : process.stdout).write(`${line}\n`);
          if (!found) {
            const message =
              "Nothing can be put back: no call of this session has an unknown outcome and a note of its folder on this machine. Nothing was changed.";
            throw new CommandError(EXIT.failed, "NOTHING_TO_RESTORE", message);
          }
          const { call, plan } = found;
          say(`Before ${callWords(call)} began:`);
          const layout = { paint: paintFor(process.stdout), full: true, columns: process.stdout.columns };
          for (const { path, now, rows } of plan.files) {
            say(`  ${plainLine(path)}${now.kind === "absent" ? " comes back" : " is put back"}`);
            for (const line of diffLines(rows ?? [], layout)) say(line);
          }
          for (const { path, why } of plan.left) say(`  ${plainLine(path)} stays as it is: ${why}`);
          const isMeant = plan.files.length > 0 && (yes === true || (await asks()));
          const { restored, changed } = isMeant ? await found.restore() : { restored: [], changed: [] };
          for (const path of changed) say(`  ${plainLine(path)} stays as it is: somebody has changed it just now`);
          const left = [...plan.left, ...changed.map((path) => ({ path, why: "somebody has changed it just now" }))];
          if (json) process.stdout.write(`${jsonText({ call: call.id, restored, left })}\n`);
          else
            say(
              restored.length === 0
                ? "Nothing was changed."
                : `${restored.length} of ${plan.files.length} files are back.`,
            );
        });
      }),
    );
}

async function asks(): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      "There is no terminal to ask in. Use --yes to put these files back without a question. Nothing was changed.",
    );
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(?:es)?$/i.test((await lines.question("Put these files back? [y/N] ")).trim());
  } finally {
    lines.close();
  }
}
