import { once } from "node:events";
import type { Command } from "commander";
import { dialectNames, type Format } from "../../export/format.ts";
import { withStore } from "../../store/open.ts";
import { harmlessJson } from "../../terminal/json.ts";

interface Options {
  readonly format?: string;
  readonly output?: string;
  readonly redact?: true;
  readonly force?: true;
}

export function register(program: Command): void {
  program
    .command("export")
    .argument("<id>", 'session id, its first or last characters, or "latest"')
    .summary("export a session as Markdown, HTML, JSON lines or messages of any dialect")
    .description(
      "Writes a session to standard output, or to a file that only you can read. You can export a session while it is in use.",
    )
    .option(
      "-f, --format <format>",
      `markdown, html (one self-contained page), jsonl (every record of the journal), messages (in the session's own dialect), or a dialect: ${dialectNames.join(", ")} (default: from the file name, else "markdown")`,
    )
    .option("-o, --output <file>", "write to this file, atomically")
    .option("--redact", "replace anything that looks like a key, token or password")
    .option("--force", "overwrite the file if it exists")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast export latest\n  holdfast export latest -o talk.html --redact\n  holdfast export 5f2a91c0 --format anthropic | jq length",
    )
    .action(async (given: string, options: Options, command: Command) => {
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

/** Respects backpressure: an export can be gigabytes long. */
async function print(pieces: AsyncIterable<string>): Promise<void> {
  // Only JSON needs escaping: the readable formats are already safe for a terminal.
  const shown = (piece: string): string => (process.stdout.isTTY ? harmlessJson(piece) : piece);
  for await (const piece of pieces) if (!process.stdout.write(shown(piece))) await once(process.stdout, "drain");
}
