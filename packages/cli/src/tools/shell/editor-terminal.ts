import { setTimeout as passed } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import type { EditorTerminal, EditorTerminals, TerminalCommand } from "@holdfast/server/internal/contract";
import { outcomeUnknown, wasStopped } from "../results/outcome-words.ts";
import { RESULT_CHARS_MAX, withoutNul } from "../results/result-text.ts";
import type { Environment } from "./environment.ts";
import { EDITOR_TERMINAL, endedResult, printedResult } from "./surviving-commands.ts";

/** How long the editor may take to end a command, and to free its terminal. */
const STOPPING_MS = 3000;

/** There is a terminal, but nobody who types into it. */
const UNATTENDED = { PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };

interface TerminalContext {
  readonly cwd: string;
  readonly env: Environment;
  readonly process: (call: string, process: { readonly pid: number; readonly started: string }) => Promise<void>;
}

/**
 * Runs a command in a terminal of the editor until it ends. Throws an error worded for the model if it was stopped or
 * timed out, or if the editor does not say how it ended.
 */
export async function runInEditor(
  context: TerminalContext,
  terminals: EditorTerminals,
  call: string,
  { command, seconds, signal }: { readonly command: string; readonly seconds: number; readonly signal?: AbortSignal },
): Promise<string> {
  // The journal must name a process before the editor is asked: without one, the command counts as never started (R7b).
  // The real one is unknown, and this one is never found to be running.
  await context.process(call, { pid: process.pid, started: EDITOR_TERMINAL });
  if (signal?.aborted) throw new Error("The command was stopped before it started: it did not run.");
  const stopping = new TerminalStop(seconds, signal);
  try {
    const terminal = await started(terminals.create(call, terminalCommand(context, command)), stopping);
    try {
      return await untilEnd(terminal, stopping);
    } finally {
      await Promise.race([terminal.release().catch(() => {}), passed(STOPPING_MS, undefined, { ref: false })]);
    }
  } finally {
    stopping.forget();
  }
}

async function started(creating: Promise<EditorTerminal>, stopping: TerminalStop): Promise<EditorTerminal> {
  let terminal: EditorTerminal | null;
  try {
    terminal = await Promise.race([creating, stopping.stopped.then(() => null)]);
  } catch (error) {
    throw outcomeUnknown(`the editor did not confirm that it started the command (${messageOf(error)})`);
  }
  if (terminal) return terminal;
  // A terminal that comes late is not left running.
  creating.then((late) => late.kill().finally(() => late.release())).catch(() => {});
  throw wasStopped();
}

async function untilEnd(terminal: EditorTerminal, stopping: TerminalStop): Promise<string> {
  // `Promise.race` handles a rejection that comes later than this function's end.
  terminal.ended.catch(() => {});
  try {
    const end = await Promise.race([terminal.ended, stopping.stopped]);
    const isEnded = typeof end === "object" || (await isKilled(terminal));
    const printed = terminal.output();
    const output = shownOutput(await (typeof end === "string" ? soon(printed) : printed));
    if (typeof end === "string") {
      const left = isEnded ? "" : " It may still be running.";
      return fail(`The command ${end}.${left} ${printedResult(output)}`);
    }
    if (end.code === null) return fail(`The command was killed by ${end.by ?? "a signal"}. ${printedResult(output)}`);
    return endedResult(output, { exitCode: end.code, background: false });
  } catch (error) {
    if (error instanceof CommandFailed) throw new Error(error.message);
    if (stopping.signal?.aborted) throw wasStopped();
    throw outcomeUnknown(`the editor lost its terminal (${messageOf(error)})`);
  }
}

/** The editor's terminal worked, and the command did not end well. */
class CommandFailed extends Error {}

function fail(words: string): never {
  throw new CommandFailed(words);
}

/** Whether the command has ended. */
async function isKilled(terminal: EditorTerminal): Promise<boolean> {
  await Promise.race([terminal.kill(), passed(STOPPING_MS, undefined, { ref: false })]);
  const ended = terminal.ended.then(() => true);
  return Promise.race([ended, passed(STOPPING_MS, false, { ref: false })]);
}

/** An editor that does not answer does not keep a turn from being stopped. */
async function soon<T>(asked: Promise<T>): Promise<T> {
  const late = passed(STOPPING_MS, null, { ref: false }).then(() => {
    throw new Error("it does not answer");
  });
  return Promise.race([asked, late]);
}

/** Fires once, with words for the model: the turn was stopped, or the command took too long. */
class TerminalStop {
  readonly signal: AbortSignal | undefined;
  readonly stopped: Promise<string>;
  readonly forget: () => void;

  constructor(seconds: number, signal: AbortSignal | undefined) {
    this.signal = signal;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.stopped = promise;
    const abort = (): void => resolve("was stopped");
    const timer = setTimeout(() => resolve(`took longer than ${seconds} s and was stopped`), seconds * 1000);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    this.forget = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
  }
}

/**
 * The editor's terminals have its own environment, with the user's keys. The command sees only the variables that any
 * other command of the agent sees: a shell drops the others first. Its script is in a variable, so that the editor
 * shows little more than the command.
 */
export function terminalCommand({ cwd, env }: Pick<TerminalContext, "cwd" | "env">, command: string): TerminalCommand {
  const kept = Object.entries({ ...env, ...UNATTENDED }).flatMap(([name, value]) =>
    value !== undefined && /^[A-Za-z_]\w*$/.test(name) && name !== "TERM" ? [[name, value] as const] : [],
  );
  const names = ["TERM", ...kept.map(([name]) => name)].map((name) => `${name}="$${name}"`);
  const script = `exec env -i ${names.join(" ")} sh -c -- "$1"`;
  return {
    command: "sh",
    args: ["-c", 'eval "$HOLDFAST_RUN"', "sh", command],
    env: { ...Object.fromEntries(kept), HOLDFAST_RUN: script },
    cwd,
    outputBytesMax: RESULT_CHARS_MAX,
  };
}

/** As a program without a terminal would have printed it. */
function shownOutput({ text, isCut }: { readonly text: string; readonly isCut: boolean }): string {
  const plain = withoutNul(stripVTControlCharacters(text).replaceAll("\r\n", "\n"));
  const end = plain.slice(-RESULT_CHARS_MAX).replace(/^[\uDC00-\uDFFF]/u, "");
  return isCut || end.length < plain.length ? `[The beginning of the output is left out.]\n${end}` : end;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
