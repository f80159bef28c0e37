import type { Finding, Refused } from "@holdfast/doctor";
import type { Command } from "commander";
import type { Repair } from "../../doctor/repair.ts";
import { DECLINED, type SessionReport } from "../../doctor/report.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { paintFor } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { isPlain, plainLine } from "../../terminal/plain.ts";
import { progressOn } from "../../terminal/progress.ts";
import { shellQuoted, typedCommand } from "../../typed-command.ts";

interface Options {
  readonly all?: true;
  readonly fix?: true;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly undo?: string | true;
  readonly json?: true;
  readonly secrets?: true;
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
    .option("--secrets", "count what looks like a credential in each session, without showing it (slower)")
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
  const { examine, findSessions, refusedFolders, unknownReport } = await import("../../doctor/examine.ts");
  const { reportJson, reportLines, sumWords } = await import("../../doctor/report.ts");
  const { askAtTerminal, repair, repairLines } = await import("../../doctor/repair.ts");
  const { showKeptFiles } = await import("../../doctor/kept-folder.ts");
  const { Door } = await import("@holdfast/doctor");
  const refusals: Refused[] = [];
  using door = new Door({}, null, (refused) => refusals.push(refused));
  await showKeptFiles(door, command.optsWithGlobals());
  const progress = progressOn(process.stderr, Number.POSITIVE_INFINITY);
  const paint = paintFor(process.stdout);
  const print = (line: string): void => {
    if (!options.json) process.stdout.write(`${line}\n`);
  };
  // First all, so that a mistake in a path stops the command before it does anything, and what moves is seen once.
  const findings: Finding[] = [];
  for await (const finding of findSessions(paths, door)) {
    findings.push(finding);
    progress.show(findings.length, "sessions found");
  }
  const unknown = new Map<Finding, SessionReport>();
  for (const each of findings) if (each.agent === null) unknown.set(each, unknownReport(each.path));
  const reports: SessionReport[] = refusedFolders(refusals);
  const repairs: Repair[] = [];
  const show = (report: SessionReport): void => {
    progress.clear();
    for (const line of reportLines(report, paint)) print(line);
  };
  for (const report of reports) show(report);
  const reading = progressOn(process.stderr, findings.length);
  for (const [index, finding] of findings.entries()) {
    if (finding.agent !== null) reading.show(index, `sessions read. ${plainLine(finding.session.path)}`);
    const report = finding.agent === null ? unknown.get(finding)! : await examine(finding, door, options);
    reports.push(report);
    const isHealthy = report.problems.length === 0 && (report.secrets?.size ?? 0) === 0;
    if (!isHealthy || options.all || paths.length === 1) show(report);
    if (!(options.fix || options.dryRun) || finding.agent === null) continue;
    const ask = options.yes ? null : askAtTerminal;
    for (let { problems, diagnosis } = report; problems.length > 0; ) {
      const { keptFolderOf } = door;
      const isDryRun = options.dryRun === true;
      const done = await repair(finding, problems, { isDryRun, ask, show: print, keptFolderOf });
      repairs.push(done);
      for (const line of repairLines(done)) print(line);
      // What nobody could read before is read now.
      diagnosis = done.next;
      problems = diagnosis?.problems ?? [];
      if (diagnosis) show({ ...report, diagnosis, problems });
    }
  }
  progress.clear();
  const json = reportJson(reports);
  const repaired = new Set(repairs.filter(({ problemsLeft }) => problemsLeft === 0).map(keyOf));
  const damaged = reports.filter((report) => report.problems.length > 0 && !repaired.has(keyOf(report)));
  if (options.json)
    process.stdout.write(
      `${jsonText(options.fix || options.dryRun ? { ...json, repairs: repairs.map(withoutDiagnosis) } : json, 2)}\n`,
    );
  else {
    print(sumWords(reports, repaired.size));
    for (const line of nextSteps(damaged, repairs, options, paths)) print(line);
  }
  if (damaged.length > 0) process.exitCode = EXIT.failed;
}

/** Several sessions may share a file. */
const keyOf = ({ session, path }: Pick<SessionReport, "session" | "path">): string => JSON.stringify([session, path]);

function withoutDiagnosis({ next: _, ...repair }: Repair): object {
  return repair;
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
  const declined = new Set(repairs.flatMap((each) => (each.why === DECLINED ? [keyOf(each)] : [])));
  const readable = damaged.find(
    (report) =>
      !declined.has(keyOf(report)) && isPlain(report.path) && Object.keys(report.diagnosis?.units ?? {}).length > 0,
  );
  if (fix && !dryRun && readable)
    lines.push(`To bring what is readable into Holdfast: ${typedCommand(`import ${shellQuoted(readable.path)}`)}`);
  return lines;
}
