import { defined } from "../defined.ts";
import type { Json } from "../journal/record.ts";
import type { StepEnded, StepStarted } from "./records/records.ts";

export type StepRecord = StepStarted | StepEnded;

/** A step of a started tool. */
export interface Step {
  /** When its start was recorded, or its end if the start is lost. */
  readonly at: string;
  readonly idempotencyKey?: string;
  readonly replay?: "safe";
  readonly probe?: true;
  /** Null: it was started, and its outcome is unknown. */
  readonly ended: StepOutcome | null;
}

export interface StepOutcome {
  readonly at: string;
  readonly value?: Json;
  readonly error?: string;
  readonly ms?: number;
  readonly source?: string;
  readonly redacted?: true;
  readonly lost?: true;
}

/** The steps of a call, by name, in the order in which they first started. */
export type Steps = ReadonlyMap<string, Step>;

/** Adds what a record says. A new start takes the place of an earlier outcome: the step runs again. */
export function addStep(steps: Map<string, Step>, record: StepRecord & { readonly at: string }): void {
  const at = record.first ?? record.at;
  if (record.kind === "step.started") {
    const { idempotencyKey, replay, probe } = record;
    steps.set(record.step, { at, ended: null, ...defined({ idempotencyKey, replay, probe }) });
    return;
  }
  const { value, error, ms, source, redacted, lost } = record;
  const ended = { at, ...defined({ value, error, ms, source, redacted, lost }) };
  steps.set(record.step, { at, ...steps.get(record.step), ended });
}

/** The records that begin a new epoch with these steps: of one that has ended, its end alone. */
export function stepRecords(steps: Steps, of: Pick<StepStarted, "turn" | "call" | "message" | "index">): StepRecord[] {
  return [...steps].map(([step, { at, idempotencyKey, replay, probe, ended }]) => {
    if (!ended) {
      const started = { kind: "step.started", ...of, step, ...defined({ idempotencyKey, replay, probe }) } as const;
      return { ...started, carried: true, first: at };
    }
    const { at: first, ...outcome } = ended;
    return { kind: "step.ended", ...of, step, ...outcome, carried: true, first };
  });
}
