import type { Durability } from "holdfast/store";
import type { KillPoint } from "../kill/pausing-disk.ts";
import type { Message, VoiceName } from "./voices.ts";

/** The job of an agent under test, as JSON in its first argument. */
export interface AgentJob {
  /** An address for `openStore`. */
  readonly address: string;
  readonly durability: Durability;
  /** Null: create a new session. */
  readonly session: string | null;
  readonly voice: VoiceName;
  readonly seed: number;
  readonly life: number;
  readonly draftMs: number;
  /** A file to which every tool writes a line: its effect on the world. */
  readonly effects: string;
  /** How many turns it works on before it waits to be killed. */
  readonly turns: number;
  /** A prompt that got no answer in an earlier life: a client would send it again, with its id. */
  readonly retry?: { readonly id: string; readonly message: Message };
  /** A disk step to pause at. */
  readonly point?: KillPoint;
  /** To show that the oracle detects faults: something that an agent, or the library, must not do. */
  readonly flaw?: Flaw;
}

export const flaws = [
  /** Tells the user that a prompt is safe before it is recorded. */
  "acknowledges-early",
  /** Runs the tool, and records its start afterwards. */
  "runs-before-start",
  /** Holds back the results of a batch, and records them together at its end. */
  "results-at-the-end",
  /** Runs every call without a result again. */
  "runs-again",
  /** Holds back streamed text until it is complete. */
  "keeps-its-words",
  /** Continues the draft of a failed stream. */
  "mixes-attempts",
  /** Delivers a queued prompt, and leaves it in the queue. */
  "delivers-twice",
  /** Sends what is recorded instead of the view. */
  "sends-entries",
  /** Reports metadata as recorded without recording it. */
  "forgets-metadata",
] as const;
export type Flaw = (typeof flaws)[number];

/** How long a flawed agent stays where it can be caught. */
export const FLAW_MS = 10_000;
