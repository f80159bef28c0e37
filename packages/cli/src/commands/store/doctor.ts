import type { Command } from "commander";
import { EXIT } from "../../exit.ts";
import { paintFor } from "../../terminal/colour.ts";
import { jsonText } from "../../terminal/json.ts";
import { progressOn } from "../../terminal/progress.ts";

interface Options {
  readonly all?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("doctor")
    .argument("[path...]", "session files or folders of any agent (default: where agents keep their sessions)")
    .summary("check the sessions of other agents")
    .description(
      "Reads the session files of other agents, such as Claude Code, and says for each what is wrong with it, where, and what that means. Changes nothing. Exit code 1 if it finds a problem.",
    )
    .option("--all", "show healthy sessions too")
    .option("--json", "one JSON object, with all sessions and a list of all problems")
    .addHelpText("after", "\nExamples:\n  holdfast doctor\n  holdfast doctor ~/.claude/projects --json")
    .action(async (paths: readonly string[], options: Options) => {
      const { examine, findSessions } = await import("../../doctor/examine.ts");
      const { reportJson, reportLines, sumWords } = await import("../../doctor/report.ts");
      const progress = progressOn(process.stderr, Number.POSITIVE_INFINITY);
      const paint = paintFor(process.stdout);
      const reports = [];
      for await (const finding of findSessions(paths)) {
        progress.show(reports.length, "sessions read");
        const report = await examine(finding);
        reports.push(report);
        if (options.json || (report.problems.length === 0 && !options.all && paths.length !== 1)) continue;
        progress.clear();
        process.stdout.write(`${reportLines(report, paint).join("\n")}\n`);
      }
      progress.clear();
      if (options.json) process.stdout.write(`${jsonText(reportJson(reports), 2)}\n`);
      else process.stdout.write(`${sumWords(reports)}\n`);
      if (reports.some(({ problems }) => problems.length > 0)) process.exitCode = EXIT.failed;
    });
}
