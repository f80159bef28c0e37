import { fstatSync } from "node:fs";
import { inspect } from "node:util";
import { Command, CommanderError } from "commander";
import { register as registerAcp } from "./commands/agent/acp.ts";
import { register as registerAttach } from "./commands/agent/attach.ts";
import { register as registerChat } from "./commands/agent/chat.ts";
import { register as registerResume } from "./commands/agent/resume.ts";
import { register as registerRun } from "./commands/agent/run.ts";
import { register as registerServe } from "./commands/agent/serve.ts";
import { register as registerShare } from "./commands/agent/share.ts";
import { register as registerWrap } from "./commands/agent/wrap.ts";
import { register as registerCompletion } from "./commands/completion.ts";
import { register as registerConfig } from "./commands/config.ts";
import { register as registerDemo } from "./commands/demo.ts";
import { fitHelp, formatItem } from "./commands/help-text.ts";
import { register as registerMcp } from "./commands/mcp.ts";
import { register as registerRules } from "./commands/rules.ts";
import { register as registerExport } from "./commands/sessions/export.ts";
import { register as registerFork } from "./commands/sessions/fork.ts";
import { register as registerLs } from "./commands/sessions/ls.ts";
import { register as registerRename } from "./commands/sessions/rename.ts";
import { register as registerRestore } from "./commands/sessions/restore.ts";
import { register as registerRestoreFiles } from "./commands/sessions/restore-files.ts";
import { register as registerRetry } from "./commands/sessions/retry.ts";
import { register as registerRm } from "./commands/sessions/rm.ts";
import { register as registerSearch } from "./commands/sessions/search.ts";
import { register as registerShow } from "./commands/sessions/show.ts";
import { register as registerTail } from "./commands/sessions/tail.ts";
import { register as registerTrash } from "./commands/sessions/trash.ts";
import { expandShorthand } from "./commands/shorthand.ts";
import { register as registerCopy } from "./commands/store/copy.ts";
import { register as registerDoctor } from "./commands/store/doctor.ts";
import { register as registerGc } from "./commands/store/gc.ts";
import { register as registerImport } from "./commands/store/import.ts";
import { register as registerPack } from "./commands/store/pack.ts";
import { register as registerRepair } from "./commands/store/repair.ts";
import { register as registerVerify } from "./commands/store/verify.ts";
import { register as registerWatch } from "./commands/store/watch.ts";
import { register as registerTorture } from "./commands/torture.ts";
import { EXIT, exitCodes } from "./exit.ts";
import { failureLines, failureOf } from "./failure.ts";
import { paintFor } from "./terminal/colour.ts";
import { endWithPipe } from "./terminal/pipe.ts";
import { plain } from "./terminal/plain.ts";
import { wrapWords } from "./terminal/wrap-words.ts";
import { rememberStore } from "./typed-command.ts";
import { version } from "./version.ts";
import { withoutPasswords } from "./without-passwords.ts";

/**
 * Runs the command named by the arguments. Leaves the exit code in `process.exitCode`, so that all output is flushed.
 */
export async function main(args: readonly string[]): Promise<void> {
  endWithPipe();
  try {
    const program = makeProgram();
    const names = program.commands.flatMap((one) => [one.name(), ...one.aliases()]);
    const wanted = expandShorthand(args, [...names, "help"], hasInput());
    // Options alone, such as --store, name no command.
    const isStart = wanted.every(
      (arg, i) => arg === "--store" || arg.startsWith("--store=") || wanted[i - 1] === "--store",
    );
    await program.parseAsync(isStart ? [startOf(program), ...wanted] : wanted, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage;
    else report(error);
  }
}

/** Whether something is piped into this command, or redirected from a file. */
function hasInput(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile();
  } catch (error) {
    // It is closed.
    if (error instanceof Error && "syscall" in error) return false;
    throw error;
  }
}

const SHORTHAND = [
  "Without a command:",
  '  holdfast "prompt"       chat, and start with this prompt',
  "  holdfast -c [prompt]    continue the latest session in this folder",
  "  holdfast -r [id]        resume a session; without an id, choose from a list",
  '  holdfast -p "prompt"    print the answer and exit, as "run" does',
  "  holdfast -m <model>     use this model; works with all of these",
  "",
];

const EXAMPLES = [
  "Examples:",
  "  holdfast demo",
  '  holdfast "what does src/index.ts do?"',
  "  holdfast run \"count words in src to words.md\" --allow 'write(words.md)'",
  "  holdfast run --continue --finish --allow 'write(words.md)'",
  "  holdfast help run",
];

/** All commands, for the command line, completion and tests. */
export function makeProgram(): Command {
  const program = new Command("holdfast")
    .description("A crash-proof agent, and tools to list, search, verify and repair sessions.")
    .usage('[options] [command | "prompt"]')
    .version(version, "-v, --version", "print the version")
    .option(
      "--store <address>",
      "where sessions are stored: a folder, sqlite:<file> or a postgres: URL (default: HOLDFAST_STORE, else the user's data folder)",
    )
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true, formatItem })
    .configureOutput({
      writeOut: (text) => process.stdout.write(fitHelp(text, process.stdout.columns)),
      outputError: (text, write) => {
        const words = withoutPasswords(text.replace(/^error: /, "holdfast: "));
        write(wrapWords(words, process.stderr.columns, 2).join("\n"));
      },
    })
    .hook("preAction", (_program, command) => rememberStore(command.optsWithGlobals()))
    .showHelpAfterError("Try --help.")
    .exitOverride();
  program.addHelpText("after", () => `\n${[...SHORTHAND, ...EXAMPLES, "", ...exitCodeLines()].join("\n")}`);
  registerChat(program);
  registerRun(program);
  registerResume(program);
  registerAcp(program);
  registerWrap(program);
  registerServe(program);
  registerAttach(program);
  registerShare(program);
  registerDemo(program);
  registerLs(program);
  registerSearch(program);
  registerShow(program);
  registerTail(program);
  registerExport(program);
  registerCopy(program);
  registerFork(program);
  registerRename(program);
  registerRetry(program);
  registerRm(program);
  registerTrash(program);
  registerRestore(program);
  registerRestoreFiles(program);
  registerGc(program);
  registerPack(program);
  registerVerify(program);
  registerRepair(program);
  registerDoctor(program);
  registerImport(program);
  registerWatch(program);
  registerTorture(program);
  registerMcp(program);
  registerRules(program);
  registerConfig(program);
  registerCompletion(program);
  program
    .command("exit-codes", { hidden: true })
    .description(exitCodeLines().join("\n"))
    .action(() => void process.stdout.write(`${exitCodeLines().join("\n")}\n`));
  return program;
}

/** The default command: chat if a person is at the terminal, else help. */
function startOf(program: Command): string {
  const canChat = process.stdin.isTTY && process.stdout.isTTY && program.commands.some((one) => one.name() === "chat");
  return canChat ? "chat" : "--help";
}

function exitCodeLines(): string[] {
  return ["Exit codes:", ...exitCodes.map(([code, meaning]) => `  ${code}  ${meaning}`)];
}

/** Prints the error. The stack trace is for those who set HOLDFAST_DEBUG. */
export function report(error: unknown): void {
  const failure = failureOf(error);
  process.exitCode = failure.exitCode;
  const lines = failureLines(failure, process.stderr.columns, paintFor(process.stderr));
  process.stderr.write(`${lines.join("\n")}\n`);
  const { HOLDFAST_DEBUG } = process.env;
  if (HOLDFAST_DEBUG && HOLDFAST_DEBUG !== "0") process.stderr.write(`${plain(inspect(error))}\n`);
}
