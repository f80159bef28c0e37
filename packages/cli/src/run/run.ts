import { text as allOf } from "node:stream/consumers";
import type { Config } from "../config.ts";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import { exitCodeOf } from "../failure.ts";
import { isStoreFailure } from "../host/failures.ts";
import type { Chat, ChatEvent, FailureShown, PermissionAsk } from "../host/host.ts";
import { type LocalHost, openLocalHost } from "../host/local/local-host.ts";
import { shortId } from "../short-id.ts";
import { isInMemory } from "../store/address.ts";
import { assertStore } from "../store/open.ts";
import { resolveId } from "../store/session-id.ts";
import { outlivePipe } from "../terminal/pipe.ts";
import { callWords } from "../transcript/words.ts";
import { typedCommand } from "../typed-command.ts";
import { askPerson } from "./ask.ts";
import { type Printer, printerFor } from "./print.ts";

export interface RunOptions {
  readonly prompt?: string;
  readonly model?: string;
  readonly resume?: string;
  readonly here?: true;
  readonly takeOver?: true;
  readonly continue?: true;
  readonly stdin?: true;
  readonly finish?: true;
  readonly stopProcesses?: true;
  readonly title?: string;
  readonly json?: true;
  readonly quiet?: true;
}

/** Runs one turn from the command line. Leaves the exit code in `process.exitCode`. */
export async function run(options: RunOptions, config: Config): Promise<void> {
  const prompt = options.finish ? null : await promptOf(options.prompt, options.stdin === true);
  // A reader that closes the pipe does not cancel the turn, which is still recorded to its end (C13).
  let unwritten: Error | null = null;
  outlivePipe((error) => {
    unwritten ??= error;
  });
  // The default: a process that exits because it has nothing left to wait for has not done its work.
  process.exitCode = EXIT.failed;
  if (options.resume !== undefined || options.continue || options.finish) await assertStore(config);
  const isAtTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true && !options.json;
  const host = await openLocalHost({ config, asks: isAtTerminal ? "person" : "nobody" });
  let isInterrupted = false;
  try {
    const chat = await chatFor(host, options);
    const onInterrupt = (): void => {
      // A second Ctrl+C has its default effect.
      process.off("SIGINT", onInterrupt);
      isInterrupted = true;
      chat.stop("user").catch((error: unknown) => {
        if (!isStoreFailure(error)) process.emitWarning(error as Error);
      });
    };
    process.on("SIGINT", onInterrupt);
    process.exitCode = await inChat(chat, prompt, options, { isAtTerminal, warnings: warningsOf(host) });
    if (unwritten) throw unwrittenOutput(chat.id, unwritten);
  } finally {
    await host.close();
  }
  // Let the parent see that Ctrl+C ended it, as with any other command.
  if (isInterrupted) process.kill(process.pid, "SIGINT");
}

function unwrittenOutput(session: string, error: Error): CommandError {
  const message = `The output could not be written: ${error.message}. The turn is recorded anyway: "${typedCommand(`show ${shortId(session)}`)}" shows it.`;
  return new CommandError(EXIT.failed, "OUTPUT_LOST", message, error);
}

/** What the store cannot promise. */
function warningsOf({ store, warnings }: LocalHost): readonly string[] {
  if (!isInMemory(store)) return warnings;
  return [...warnings, "The store is in memory: this session is lost when the command ends."];
}

interface RunEnvironment {
  readonly isAtTerminal: boolean;
  readonly warnings: readonly string[];
}

async function inChat(
  chat: Chat,
  prompt: string | null,
  options: RunOptions,
  { isAtTerminal, warnings }: RunEnvironment,
): Promise<number> {
  const printer = await printerFor(options);
  const ends: (ChatEvent & { type: "turn.ended" })[] = [];
  let unanswered: { readonly error: unknown } | null = null;
  const { state } = chat;
  printer.event({
    type: "session",
    session: chat.id,
    model: state.model,
    cwd: state.cwd,
    resumed: state.items.length > 0,
  });
  for (const text of [...warnings, ...state.damage]) printer.event({ type: "notice", level: "warning", text });
  const ask = (asked: PermissionAsk): void => {
    // An answer that cannot be recorded decides nothing: the call keeps waiting.
    askPerson(chat, asked).catch((error: unknown) => {
      unanswered ??= { error };
      return chat.stop();
    });
  };
  chat.subscribe((event) => {
    printer.event(event);
    if (event.type === "turn.ended") ends.push(event);
    if (event.type === "permission.asked" && isAtTerminal) ask(event.ask);
  });
  // Questions left open by an earlier process are asked again first; the new prompt comes after them.
  for (const asked of state.asks) {
    printer.event({ type: "permission.asked", ask: asked });
    ask(asked);
  }
  if (prompt !== null) {
    if (state.interruption && state.asks.length === 0) leaveBehind(chat, printer);
    await chat.prompt(prompt);
  } else if (state.status === "running" || state.asks.length > 0) {
    // It goes on by itself: the questions of the last process are asked again.
  } else if (!state.interruption && state.queue.length === 0) {
    // Success, so that a script that runs --finish until it is done can stop.
    printer.event({ type: "notice", level: "warning", text: "Nothing to finish: the last turn completed." });
    return EXIT.done;
  } else if (!state.interruption) await chat.resumeQueue();
  else {
    for (const call of state.account.calls) {
      // What the person should know before the model decides what to do about it.
      if (call.changes) printer.event({ type: "notice", level: "info", text: `${callWords(call)}: ${call.words}` });
    }
    await chat.finish({ processes: options.stopProcesses ? "stop" : "wait" });
  }
  await chat.settled();
  // Questions to a person are part of the turn.
  while (chat.state.asks.length > 0) await waitForAnswer(chat);
  if (ends.length === 0) {
    // Stopped before the turn was resumed: readers of the events still need an end.
    const end = { type: "turn.ended", outcome: "aborted", denied: 0, by: "user" } as const;
    ends.push(end);
    printer.event(end);
  }
  printer.end(chat.id);
  if (unanswered) throw (unanswered as { readonly error: unknown }).error;
  return codeOf(ends);
}

/**
 * A new prompt replaces an interrupted turn. Calls that waited for approval then do not run; the user is always told.
 */
function leaveBehind(chat: Chat, printer: Printer): void {
  const waiting = chat.state.interruption!.calls.filter(({ state }) => state === "awaiting");
  const instead = `To finish such a turn instead: ${typedCommand(`run --resume ${shortId(chat.id)} --finish`)}`;
  chat.leave();
  if (waiting.length === 0) {
    const text = `The previous turn was interrupted and stays unfinished; the model is told. ${instead}`;
    printer.event({ type: "notice", level: "info", text });
    return;
  }
  const text = `The previous turn was waiting for approval and stays unfinished. Did not run: ${waiting.map((call) => callWords(call)).join(", ")}. ${instead}`;
  printer.event({ type: "notice", level: "warning", text });
}

/** Resolves when the open questions are answered and the resulting work has ended. */
async function waitForAnswer(chat: Chat): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = chat.subscribe(() => {
      if (chat.state.asks.length > 0) return;
      stop();
      resolve();
    });
  });
  await chat.settled();
}

async function chatFor(host: LocalHost, options: RunOptions): Promise<Chat> {
  const model = defined({ model: options.model });
  const cwd = process.cwd();
  if (options.resume !== undefined)
    return host.open(await resolveId(host.sessions, options.resume), {
      ...model,
      here: options.here === true,
      takeOver: options.takeOver === true,
    });
  if (options.continue || options.finish) {
    const chat = await host.latest(cwd, model);
    if (chat) return chat;
    throw new CommandError(
      EXIT.notFound,
      "SESSION_NOT_FOUND",
      `No free session in this folder (${cwd}). Drop --continue and --finish to start one, or name one with --resume: "${typedCommand("ls")}" lists them.`,
    );
  }
  return host.create({ cwd, ...model, ...defined({ title: options.title }) });
}

export async function promptOf(given: string | undefined, withInput: boolean): Promise<string> {
  if (given !== undefined && given !== "-") {
    const prompt = nonEmpty(given, "The prompt is empty.");
    if (!withInput) return prompt;
    const input = await readInput();
    return input.trim() === "" ? prompt : `${prompt}\n\n${input.replace(/\n$/, "")}`;
  }
  if (given === undefined && process.stdin.isTTY)
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      'No prompt given. Pass it as an argument (holdfast run "list src") or on standard input. For a conversation, use holdfast chat.',
    );
  return nonEmpty(await readInput(), "No prompt given: standard input was empty.");
}

const PATIENCE_MS = 2_000;

/** Says what it waits for: a pipe that nobody closes looks like a command that hangs. */
async function readInput(): Promise<string> {
  const words = "Reading standard input until it ends. If there is none, add: < /dev/null\n";
  const patience = setTimeout(() => process.stderr.write(words), PATIENCE_MS);
  try {
    return await allOf(process.stdin);
  } finally {
    clearTimeout(patience);
  }
}

function nonEmpty(text: string, otherwise: string): string {
  if (text.trim() === "") throw new CommandError(EXIT.usage, "USAGE", `${otherwise} Nothing was touched.`);
  return text.replace(/\n$/, "");
}

/** The first turn that did not go well decides, including queued prompts. */
function codeOf(ends: readonly (ChatEvent & { type: "turn.ended" })[]): number {
  for (const { outcome, error, denied } of ends) {
    if (outcome === "failed") return failureCode(error);
    if (outcome === "waiting") return EXIT.denied;
    if (outcome === "aborted") return EXIT.failed;
    if (denied > 0) return EXIT.denied;
  }
  return EXIT.done;
}

function failureCode(error: FailureShown | undefined): number {
  if (error?.code.startsWith("MODEL_")) return EXIT.model;
  return error ? exitCodeOf(error.code) : EXIT.failed;
}
