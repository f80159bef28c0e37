import { errorKind, isHoldfastError } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";
import { explainModelError } from "../models/explain.ts";
import type { FailureShown } from "./host.ts";

/** Why a turn failed, for people. Our own errors keep their message. */
export function explainFailure(error: unknown, model: string): FailureShown {
  if (error instanceof CommandError || isHoldfastError(error)) return { code: error.code, message: error.message };
  return explainModelError(error, model);
}

export function stepLimitError(steps: number): CommandError {
  return new CommandError(
    EXIT.failed,
    "STEPS",
    `The turn was stopped after ${steps} steps. Everything is recorded: if it was making progress, ask it to continue.`,
  );
}

/** Nothing more can be recorded in this session until it is reopened. */
export function isStoreFailure(error: unknown): boolean {
  return errorKind(error) === "store";
}
