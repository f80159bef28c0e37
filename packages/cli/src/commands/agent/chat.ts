import { type Command, Option } from "commander";
import { loadConfig } from "../../config.ts";
import { defined } from "../../defined.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { typedCommand } from "../../typed-command.ts";
import { modelOptions, TAKE_OVER } from "./model-options.ts";

interface Options {
  readonly model?: string;
  readonly continue?: true;
  readonly resume?: string | true;
  readonly title?: string;
  readonly here?: true;
  readonly takeOver?: true;
  readonly server?: string;
  readonly folder?: string;
  readonly finishAfterRestart?: true;
}

export function register(program: Command): void {
  const command = program
    .command("chat")
    .summary("chat with the agent")
    .description(
      "Chats with the agent in the terminal. The conversation survives a crash of this process or its terminal: the next chat shows what was interrupted and offers to finish it.",
    )
    .argument("[prompt]", "a prompt to start with")
    .addOption(
      new Option(
        "-r, --resume [id]",
        "resume this session: its id, its first or last characters, or latest; omit the id to choose from a list",
      ).conflicts("continue"),
    )
    .option(
      "--here",
      "with --resume <id>: work in the current folder from now on, not in the session's recorded folder",
    )
    .option("--take-over", TAKE_OVER)
    .option("-c, --continue", "resume the latest session in this folder")
    .option("--title <title>", "title for a new session")
    .option(
      "--server <url>",
      'run the agent in this server ("holdfast serve"); its turns go on when you leave or lose the connection',
    )
    .option("--folder <path>", "with --server: the folder on the server's machine, for a new session")
    .option(
      "--finish-after-restart",
      "with --server, for a new session: after a crash of the server, its next start finishes the interrupted turn automatically, at most three times",
    );
  modelOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  holdfast chat
  holdfast chat "explain src/index.ts"
  holdfast chat --continue
  holdfast chat --resume 5f2a91c0 --model anthropic/claude-sonnet-4-5
  holdfast chat --allow 'write(src/**)' --allow 'shell(npm test)'
  holdfast chat --server http://127.0.0.1:4040

In the chat, /help lists commands and keys. Esc stops a turn; Ctrl+D quits. Everything is saved.`,
    )
    .action(async (prompt: string | undefined, options: Options, command: Command) => {
      if (prompt?.trim() === "")
        throw new CommandError(EXIT.usage, "USAGE", "The prompt is empty. Nothing was touched.");
      if (prompt !== undefined && options.resume === true)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          "With a prompt, --resume needs the id of a session. Nothing was touched.",
        );
      if (options.title !== undefined && (options.resume !== undefined || options.continue))
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          `--title is for a new session. Nothing was touched. To rename this one: /rename in the chat, or "${typedCommand("rename <id> <title>")}".`,
        );
      if (options.here && typeof options.resume !== "string")
        throw new CommandError(EXIT.usage, "USAGE", "--here requires --resume <id>. Nothing was touched.");
      if (options.takeOver && typeof options.resume !== "string")
        throw new CommandError(EXIT.usage, "USAGE", "--take-over requires --resume <id>. Nothing was touched.");
      const remote = options.server === undefined ? (["folder", "finishAfterRestart"] as const) : [];
      for (const name of remote)
        if (options[name] !== undefined)
          throw new CommandError(
            EXIT.usage,
            "USAGE",
            `--${name === "folder" ? name : "finish-after-restart"} requires --server. Nothing was touched.`,
          );
      if (options.server !== undefined && options.here)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          "--here has no meaning with --server, which works in its own folders. Nothing was touched.",
        );
      needTerminal("chat");
      const { runChat } = await loadScreen();
      await runChat({ ...options, ...defined({ prompt }) }, loadConfig(command.optsWithGlobals()));
    });
}

/**
 * React loads its slow development build unless NODE_ENV is set when it loads. Tools still see the user's own
 * environment.
 */
export async function loadScreen(): Promise<typeof import("../../screen/run-chat.ts")> {
  const own = process.env["NODE_ENV"];
  process.env["NODE_ENV"] ??= "production";
  try {
    return await import("../../screen/run-chat.ts");
  } finally {
    if (own === undefined) delete process.env["NODE_ENV"];
  }
}

export function needTerminal(name: string): void {
  const { stdin, stdout, env } = process;
  const why = whyNoScreen(stdin.isTTY, stdout.isTTY, env["TERM"]);
  if (why === null) return;
  throw new CommandError(
    EXIT.usage,
    "NO_TERMINAL",
    `${why}, and "holdfast ${name}" needs one. In scripts, use holdfast -p "prompt" (with -c or -r <id> to resume a session) and holdfast ls --json. Nothing was touched.`,
  );
}

/** Why no screen is possible; null if one is. */
export function whyNoScreen(isIn: boolean, isOut: boolean, term: string | undefined): string | null {
  if (!isIn) return "Standard input is not a terminal";
  if (!isOut) return "Standard output is not a terminal";
  return term === "dumb" ? "This terminal cannot move its cursor (TERM is dumb)" : null;
}
