import { setTimeout as sleep } from "node:timers/promises";
import type { Entry, Reading, Session, Turn } from "holdfast";
import { canonical } from "../providers/canonical.ts";
import type { Random } from "../simulation/random.ts";
import type { AgentJob } from "./job.ts";
import { words } from "./model.ts";
import type { Recorder } from "./recorder.ts";
import type { Message, ModelCall, Voice } from "./voices.ts";

/** What the parts of an agent share. */
export interface Stage {
  readonly job: AgentJob;
  readonly voice: Voice;
  readonly random: Random;
  readonly recorder: Recorder;
  readonly session: Session<Message>;
}

/** A call of the model, and its message. */
export interface PlacedCall {
  readonly call: ModelCall;
  readonly message: string;
  /** It was started before, by this rule. */
  readonly replay?: "never" | "safe";
}

/** A turn, and whether it is still running. */
export interface Work {
  readonly turn: Turn<Message>;
  /** It was stopped or suspended: whatever arrives now is late. */
  isPast: boolean;
  /** The number of responses so far: a tool called by an earlier one is late. */
  responses: number;
  /** Tools still running when the model was asked again, and the response that called the last of them. */
  readonly left: Promise<unknown>[];
  leftIn: number;
}

export async function pause({ random }: Pick<Stage, "random">, msMax: number): Promise<void> {
  await sleep(random.below(msMax + 1));
}

/** A typed prompt, with a mark. */
export function typed({ voice, random, recorder }: Stage, kind: string): Message {
  return voice.user(`${recorder.mark(kind)} ${words(random, 3 + random.below(12))}`);
}

/** What a session shows of itself, as one text: it must be the same for a reader and for its writer. */
export function shownBy(reading: Reading<Message>): string {
  const { messages, entries, interruption, queue, usage, attributes } = reading;
  const usageByTurn = [...reading.usageByTurn];
  return canonical({ messages, entries: entries.map(plain), interruption, queue, usage, usageByTurn, attributes });
}

function plain({
  id,
  turn,
  step,
  message,
  metadata,
  synthetic,
  incomplete,
  late,
  replacedBy,
}: Entry<Message>): unknown {
  return { id, turn, step, message, metadata, synthetic, incomplete, late, replacedBy };
}
