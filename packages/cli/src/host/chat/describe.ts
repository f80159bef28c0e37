import type { ModelMessage } from "ai";
import { errorKind, type Interruption, isHoldfastError, type Recovery } from "holdfast";
import { CommandError, EXIT } from "../../exit.ts";
import { explainModelError } from "../../models/explain.ts";
import { bytesWords } from "../../terminal/bytes.ts";
import type { SeenProcess } from "../../tools/shell/surviving-commands.ts";
import type { FailureShown, InterruptedCall, InterruptionShown } from "../host.ts";

/** What a session is to people, as plain data. Pure. */

export function interruptionShown(
  { turn, lastAt, resumes, how, prompt, answered, draft, calls }: Interruption<ModelMessage>,
  processes: ReadonlyMap<string, SeenProcess>,
): InterruptionShown {
  return {
    turn,
    at: lastAt,
    resumes,
    how,
    prompt: textOf(prompt.message),
    answered,
    text: draft?.text ?? "",
    calls: calls.map(({ id, name, input, state }): InterruptedCall => {
      const found = processes.get(id);
      // The command waits for its process to be recorded: without that it never began.
      if (found?.kind === "not-begun") return { call: id, name, input, state: "never-started" };
      if (found?.pid === undefined) return { call: id, name, input, state };
      const exitCode = found.exitCode === undefined ? {} : { exitCode: found.exitCode };
      return { call: id, name, input, state, process: { pid: found.pid, running: found.running, ...exitCode } };
    }),
  };
}

export function damageShown({ damaged, missing, cutBytes, quarantine }: Recovery): string[] {
  const words = damaged.map(
    ({ segment, offset, bytes, why }) =>
      `${bytesWords(bytes)} at ${offset} of ${segment}: ${why === "foreign" ? "no record of Holdfast" : "damaged"}, passed over, and still there.`,
  );
  for (const { from, to } of missing) {
    words.push(from === to ? `Record ${from} is missing.` : `Records ${from} to ${to} are missing.`);
  }
  if (cutBytes > 0) {
    words.push(
      `${bytesWords(cutBytes)} at the end were never acknowledged, and were cut off${quarantine ? `: they are kept in ${quarantine}` : ""}.`,
    );
  }
  return words;
}

/** Why a turn failed, in words; a fault of the store is told as the store tells it. */
export function failureShown(error: unknown, model: string): FailureShown {
  if (error instanceof CommandError || isHoldfastError(error)) return { code: error.code, message: error.message };
  return explainModelError(error, model);
}

export function tooManySteps(steps: number): CommandError {
  return new CommandError(
    EXIT.failed,
    "STEPS",
    `The turn was stopped after ${steps} steps. What was done is recorded: ask it to go on, if it was on its way.`,
  );
}

/** Nothing more can be recorded in this session until it is opened anew. */
export function isStoreFailure(error: unknown): boolean {
  return errorKind(error) === "store";
}

export function textOf({ content }: ModelMessage): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
