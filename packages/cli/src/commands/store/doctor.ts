import type { Command } from "commander";
import type { Repair } from "../../doctor/repair.ts";
import { DECLINED, type SessionReport } from "../../doctor/report.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { paintFor } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { progressOn } from "../../terminal/progress.ts";
import { shellQuoted, typedCommand } from "../../typed-command.ts";

interface Options {
  readonly all?: true;
  readonly fix?: true;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly undo?: string | true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("doctor")
    .argument(
      "[path...]",
      "session files or folders of any agent, or ids of sessions (default: where agents keep their sessions)",
    )
    .summary("check and repair the sessions of other agents")
    .description(
      "Reads the session files of other agents, such as Claude Code, and says for each what is wrong with it, where, and what that means. Changes nothing without --fix. Exit code 1 if a problem is left.",
    )
    .option("--fix", "repair what can be repaired; asks for each session, and keeps a backup")
    .option("--dry-run", "show what --fix would change")
    .option("--yes", "with --fix: do not ask")
    .option("--undo [backup]", "bring back what a fix replaced (default: the latest fix)")
    .option("--all", "show healthy sessions too")
    .option("--json", "one JSON object, with all sessions and a list of all problems")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast doctor\n  holdfast doctor ~/.claude/projects --json\n  holdfast doctor --fix\n  holdfast doctor --undo",
    )
    .action(async (paths: readonly string[], options: Options, command: Command) => {
      if (options.undo !== undefined) {
        if (paths.length > 0 || options.fix || options.dryRun)
          throw new CommandError(
            EXIT.usage,
            "USAGE",
            "--undo takes the id of a backup, and nothing else. Nothing was changed.",
          );
        const { undoFix } = await import("../../doctor/repair.ts");
        process.stdout.write(`${undoFix(options.undo === true ? null : options.undo)}\n`);
      } else await run(paths, options, command);
    });
}

async function run(paths: readonly string[], options: Options, command: Command): Promise<void> {
  if (options.yes && !options.fix)
    throw new CommandError(EXIT.usage, "USAGE", "--yes goes with --fix. Nothing was changed.");
  const canAsk = process.stdin.isTTY === true && !options.json;
  if (options.fix && !options.dryRun && !options.yes && !canAsk)
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      "Nobody can be asked here: pass --yes, or --dry-run. Nothing was changed.",
    );
  const { examine, findSessions } = await import("../../doctor/examine.ts");
  const { reportJson, reportLines, sumWords } = await import("../../doctor/report.ts");
  const { askAtTerminal, repair, repairLines } = await import("../../doctor/repair.ts");
  const { showKeptFiles } = await import("../../doctor/kept-folder.ts");
  const { Door } = await import("@holdfast/doctor");
  using door = new Door();
  await showKeptFiles(door, command.optsWithGlobals());
  const progress = progressOn(process.stderr, Number.POSITIVE_INFINITY);
  const paint = paintFor(process.stdout);
  const print = (line: string): void => {
    if (!options.json) process.stdout.write(`${line}\n`);
  };
  const reports = [];
  const repairs: Repair[] = [];
  for await (const finding of findSessions(paths, door)) {
    progress.show(reports.length, "sessions read");
    const report = await examine(finding, door);
    reports.push(report);
    const count = report.problems.length;
    if (count === 0 && !options.all && paths.length !== 1) continue;
    progress.clear();
    for (const line of reportLines(report, paint)) print(line);
    if (count === 0 || !(options.fix || options.dryRun) || finding.agent === null) continue;
    const ask = options.yes ? null : askAtTerminal;
    const done = await repair(finding, report.problems, {
      isDryRun: options.dryRun === true,
      ask,
      show: print,
      keptFolderOf: door.keptFolderOf,
    });
    repairs.push(done);
    for (const line of repairLines(done)) print(line);
  }
  progress.clear();
  const json = reportJson(reports);
  const repaired = new Set(repairs.filter(({ problemsLeft }) => problemsLeft === 0).map(({ path }) => path));
  const damaged = reports.filter(({ problems, path }) => problems.length > 0 && !repaired.has(path));
  if (options.json)
    process.stdout.write(`${jsonText(options.fix || options.dryRun ? { ...json, repairs } : json, 2)}\n`);
  else {
    print(sumWords(reports, repaired.size));
    for (const line of nextSteps(damaged, repairs, options, paths)) print(line);
  }
  if (damaged.length > 0) process.exitCode = EXIT.failed;
}

/** What to type now. */
function nextSteps(
  damaged: readonly SessionReport[],
  repairs: readonly Repair[],
  { fix, dryRun }: Options,
  paths: readonly string[],
): string[] {
  const lines = [];
  const typed = paths.map((path) => ` ${shellQuoted(path)}`).join("");
  if (!fix && damaged.length > 0) lines.push(`Nothing was changed. To repair: holdfast doctor --fix${typed}`);
  else if (dryRun && damaged.length > 0) lines.push("Nothing was changed.");
  const backup = repairs.findLast((each) => each.backup !== null)?.backup;
  if (backup) lines.push(`To undo the last repair: holdfast doctor --undo ${backup}`);
  const declined = new Set(repairs.flatMap(({ path, why }) => (why === DECLINED ? [path] : [])));
  const readable = damaged.find(
    ({ diagnosis, path }) => !declined.has(path) && Object.keys(diagnosis?.units ?? {}).length > 0,
  );
  if (fix && !dryRun && readable)
    lines.push(`To bring what is readable into Holdfast: ${typedCommand(`import ${shellQuoted(readable.path)}`)}`);
  return lines;
}
