import { once } from "node:events";
import type { Command } from "commander";
import type { Format } from "../../export/format.ts";
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
    .argument("<id>", 'a session: its id, the beginning or the end of it, or "latest"')
    .summary("a session as Markdown, HTML, JSON lines, or messages of any dialect")
    .description(
      "Writes a session to standard output, or to a file that only you can read. A session that is being written to can be exported, and is not disturbed.",
    )
    .option(
      "-f, --format <format>",
      'markdown, html (one page that needs nothing else), jsonl (every record of the journal), messages (in the session\'s own dialect), or a dialect: ai-sdk, anthropic, openai-chat, openai-responses, gemini, acp (default: what the name of the file says, else "markdown")',
    )
    .option("-o, --output <file>", "write to this file, as a whole or not at all")
    .option("--redact", "replace what looks like a key, a token or a password")
    .option("--force", "replace the file if it is there already")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast export latest\n  holdfast export latest -o talk.html --redact\n  holdfast export 0199 --format anthropic | jq length",
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

/** No faster than it is read: an export may have gigabytes. */
async function print(pieces: AsyncIterable<string>): Promise<void> {
  // Only JSON has anything to escape: the formats for people are harmless already.
  const shown = (piece: string): string => (process.stdout.isTTY ? harmlessJson(piece) : piece);
  for await (const piece of pieces) if (!process.stdout.write(shown(piece))) await once(process.stdout, "drain");
}
