import { isHoldfastError } from "holdfast";
import type { JournalAppended as Appended, JournalAppendOptions as AppendOptions, Journal } from "holdfast/store";
import { recordsOf } from "./content.ts";
import type { Attempt, LabEvent } from "./pipe.ts";

/** Reports each attempt and the store's answer, to `tell` in a child or `log.hear` in the laboratory. */
export type Listener = (event: LabEvent) => void;

/** Answers after which it is unknown whether the write happened. After any other refusal, it did not. */
const inDoubt = ["SYNC_FAILED", "FILE_REPLACED", "LEASE_LOST"] as const;

/** Tries one append. Resolves to the store's answer: `ack`, `refused` or `doubt`. */
export async function attemptAppend(
  journal: Journal,
  attempt: Attempt,
  say: Listener,
  options: AppendOptions = {},
): Promise<LabEvent> {
  const records = recordsOf(attempt);
  const key = attempt.key === undefined ? {} : { key: attempt.key };
  return attemptAny(attempt, () => journal.append(records, { ...options, ...key }), say);
}

export async function attemptAny(attempt: Attempt, act: () => Promise<Appended>, say: Listener): Promise<LabEvent> {
  say({ e: "attempt", ...attempt });
  const answer = await answerOf(attempt.id, act);
  say(answer);
  return answer;
}

async function answerOf(id: number, act: () => Promise<Appended>): Promise<LabEvent> {
  try {
    const { seq, last } = await act();
    return { e: "ack", id, seq, last };
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    const e = inDoubt.some((code) => code === error.code) ? "doubt" : "refused";
    return { e, id, code: error.code, message: error.message };
  }
}
