import { createHash } from "node:crypto";
import { canonical } from "../providers/canonical.ts";
import { mixSeeds, type Random, seededRandom } from "../simulation/random.ts";
import type { Message, ModelCall, Step } from "./voices.ts";

const CALLS_MAX = 4;
/** The maximum number of responses with calls per turn. */
const CALLING_MAX = 4;
const WORDS = ["the", "file", "läuft", "tests", "漢字", "passed", "🦀", "because", "next", "line\nbreak", '"quoted"'];

export interface Ask {
  readonly seed: number;
  readonly view: readonly Message[];
  /** Which response of this turn it is, counted from the first. */
  readonly nth: number;
  readonly serial: string;
  /** A new mark of a kind. */
  readonly mark: (kind: string) => string;
  /** Ids like those of local servers: the same in every response (R9). */
  readonly repeatsIds: boolean;
}

/** The scripted model: a pure function of the seed and the messages it gets. */
export function respond({ seed, view, nth, serial, mark, repeatsIds }: Ask): Step {
  const hash = createHash("sha256").update(canonical(view)).digest().readUInt32LE(0);
  const random = seededRandom(mixSeeds(seed, hash));
  const callCount = nth < CALLING_MAX && random.chance(0.65) ? 1 + random.below(CALLS_MAX) : 0;
  const calls = Array.from({ length: callCount }, (_, index): ModelCall => {
    const id = repeatsIds ? `call_${index}` : `call_${serial}_${index}`;
    return { id, name: random.pick(["read", "write", "shell"]), input: { path: mark("c") } };
  });
  const isSilent = callCount > 0 && random.chance(0.3);
  return {
    serial,
    reasoning: random.chance(0.5) ? `${mark("t")} ${words(random, 6)}` : null,
    text: isSilent ? null : `${mark("a")} ${words(random, 4 + random.below(40))}`,
    calls,
  };
}

export function words(random: Random, count: number): string {
  return Array.from({ length: count }, () => random.pick(WORDS)).join(" ");
}
