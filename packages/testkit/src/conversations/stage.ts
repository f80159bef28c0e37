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

/** A call of the model, and the message that makes it. */
export interface PlacedCall {
  readonly call: ModelCall;
  readonly message: string;
}

/** A turn, and whether it still goes on. */
export interface Work {
  readonly turn: Turn<Message>;
  /** It was stopped or suspended: what comes now comes late. */
  isPast: boolean;
  /** The model has been asked, and its answer is not recorded yet. */
  isAsking: boolean;
  /** How many responses there have been: a tool that was called by an earlier one comes late. */
  responses: number;
  /** Tools that were left running when the model was asked again; and the response that called the last of them. */
  readonly left: Promise<unknown>[];
  leftIn: number;
}

export async function pause({ random }: Pick<Stage, "random">, msMax: number): Promise<void> {
  await sleep(random.below(msMax + 1));
}

/** What somebody types, with a mark to know it by. */
export function typed({ voice, random, recorder }: Stage, kind: string): Message {
  return voice.user(`${recorder.mark(kind)} ${words(random, 3 + random.below(12))}`);
}

/** What a session shows of itself, to a reader or to its writer, as one text: the two must be equal. */
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
