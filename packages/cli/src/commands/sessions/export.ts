import { once } from "node:events";
import type { Command } from "commander";
import { CommandError, EXIT } from "../../exit.ts";
import { dialectNames, type Format } from "../../export/format.ts";
import { withStore } from "../../store/open.ts";
import { harmlessJson, jsonText } from "../../terminal/json.ts";
import { isPlain, plainLine } from "../../terminal/plain.ts";

interface Options {
  readonly format?: string;
  readonly output?: string;
  readonly redact?: true;
  readonly force?: true;
  readonly to?: string;
  readonly cwd?: string;
  readonly out?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("export")
    .argument(
      "<id>",
      'session id, its first or last characters, or "latest"; with --to also a file or id of another agent\'s session',
    )
    .summary("export a session as a document or messages, or to another agent, which resumes it")
    .description(
      "Writes a session to standard output, or to a file that only you can read. You can export a session while it is in use. With --to, writes a session that another agent lists and resumes, and prints how.",
    )
    .option(
      "-f, --format <format>",
      `markdown, html (one self-contained page), jsonl (every record of the journal), messages (in the session's own dialect), or a dialect: ${dialectNames.join(", ")} (default: from the file name, else "markdown")`,
    )
    .option("-o, --output <file>", "write to this file, atomically")
    .option("--redact", "replace anything that looks like a key, token or password")
    .option("--force", "overwrite the file if it exists")
    .option("--to <agent>", "write a session of this agent: claude-code, codex, copilot, gemini, opencode or pi")
    .option("--cwd <folder>", "with --to: the folder in which the agent goes on (default: the session's)")
    .option("--out <path>", "with --to: write this file, or into this folder, and not where the agent keeps its own")
    .option("--dry-run", "with --to: only say what would be written, and what cannot be carried over")
    .option("--json", "with --to: one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast export latest\n  holdfast export latest -o talk.html --redact\n  holdfast export 5f2a91c0 --format anthropic | jq length\n  holdfast export latest --to claude-code\n  holdfast export ~/.codex/sessions/2026/11/19/rollout-….jsonl --to gemini --dry-run",
    )
    .action(async (given: string, options: Options, command: Command) => {
      if (options.to !== undefined) {
        await move(given, options.to, options, command);
        return;
      }
      const alone = (["cwd", "out", "dryRun", "json"] as const).filter((name) => options[name] !== undefined);
      if (alone.length > 0)
        throw new CommandError(EXIT.usage, "USAGE", `--${flagOf(alone[0]!)} goes with --to. Nothing was written.`);
      const { exported, formatFor, writeOutput } = await import("../../export/index.ts");
      const { resolveId } = await import("../../store/session-id.ts");
      const output = options.output === "-" ? undefined : options.output;
      const format: Format = formatFor(options.format, output);
      await withStore(command.optsWithGlobals(), async (store) => {
        const id = await resolveId(store, given);
        const pieces = exported(store, id, { format, redact: options.redact === true });
        if (output === undefined) await print(pieces);
        else await writeOutput(output, pieces, { force: options.force === true });
      });
    });
}

const flagOf = (name: string): string => (name === "dryRun" ? "dry-run" : name);

async function move(given: string, to: string, options: Options, command: Command): Promise<void> {
  const { format, force, output, out = output, redact, dryRun, cwd } = options;
  if (format !== undefined || force)
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      `${format === undefined ? "--force" : "--format"} does not go with --to, which never replaces a file. Nothing was written.`,
    );
  const { moveSession } = await import("../../doctor/move.ts");
  const request = { given, to, cwd, out, redact: redact === true, isDryRun: dryRun === true };
  const moved = await moveSession(request, command.optsWithGlobals());
  if (options.json) {
    process.stdout.write(`${jsonText(moved)}\n`);
    return;
  }
  const verb = moved.written ? "wrote" : "would write";
  const lines = [
    plainLine(`${moved.agent} session ${moved.id}, from ${moved.from}`),
    ...moved.files.map((path) => `  ${verb} ${plainLine(path)}`),
    ...moved.leftOut.map((words) => `  not carried over: ${plainLine(words)}`),
    moved.written ? "To go on:" : "Then, to go on:",
    // What cannot be shown as it is would be another command.
    ...moved.resume.map((words) =>
      isPlain(words) && !/[\n\t]/.test(words) ? `  ${words}` : `  # ${plainLine(words)}`,
    ),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Respects backpressure: an export can be gigabytes long. */
async function print(pieces: AsyncIterable<string>): Promise<void> {
  // Only JSON needs escaping: the readable formats are already safe for a terminal.
  const shown = (piece: string): string => (process.stdout.isTTY ? harmlessJson(piece) : piece);
  for await (const piece of pieces) if (!process.stdout.write(shown(piece))) await once(process.stdout, "drain");
}
