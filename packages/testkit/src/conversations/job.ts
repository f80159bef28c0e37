import type { Durability } from "holdfast";
import type { KillPoint } from "../kill/pausing-disk.ts";
import type { Message, VoiceName } from "./voices.ts";

/** What an agent under test is told, as JSON in its first argument. */
export interface AgentJob {
  /** As `openStore` takes it. */
  readonly address: string;
  readonly durability: Durability;
  /** Null: it makes a new one. */
  readonly session: string | null;
  readonly voice: VoiceName;
  readonly seed: number;
  readonly life: number;
  readonly draftMs: number;
  /** A file that every tool writes a line to: that is its effect on the world. */
  readonly effects: string;
  /** How many turns it works on before it waits for its death. */
  readonly turns: number;
  /** A prompt that an earlier life was not answered for: a client would send it again, with its id. */
  readonly retry?: { readonly id: string; readonly message: Message };
  /** A step of its disk to stand still at. */
  readonly point?: KillPoint;
  /** To show that the oracle is not blind: something that an agent, or the library, must not do. */
  readonly flaw?: Flaw;
}

export const flaws = [
  /** Tells the user that a prompt is safe before it is recorded. */
  "acknowledges-early",
  /** Runs the tool, and records its start afterwards. */
  "runs-before-start",
  /** Keeps the results of a batch, and records them together at its end. */
  "results-at-the-end",
  /** Runs every call again that has no result. */
  "runs-again",
  /** Keeps the words that it streams to itself until they are whole. */
  "keeps-its-words",
  /** Goes on with the draft of a stream that failed. */
  "mixes-attempts",
  /** Hands a queued prompt over, and leaves it in the queue. */
  "delivers-twice",
  /** Sends what is recorded, and not what the view shows. */
  "sends-entries",
  /** Says that metadata is recorded, and does not record it. */
  "forgets-metadata",
] as const;
export type Flaw = (typeof flaws)[number];

/** How long a flawed agent stays where it can be caught. */
export const FLAW_MS = 10_000;
