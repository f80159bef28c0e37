import type { KillPoint } from "../kill/pausing-disk.ts";
import { mixSeeds, type Random, seededRandom } from "../simulation/random.ts";
import type { AgentEvent, Op } from "./events.ts";
import { type VoiceName, voiceNames } from "./voices.ts";

/** When a life ends. */
export type Ending =
  /** This many microseconds after everything was loaded. */
  | { readonly by: "instant"; readonly us: number }
  /** At a disk step. */
  | { readonly by: "point"; readonly point: KillPoint }
  /** This many microseconds after the nth event of a kind; for a `try`, of a call with this name. */
  | {
      readonly by: "event";
      readonly e: AgentEvent["e"];
      readonly op?: Op["do"];
      readonly nth: number;
      readonly us: number;
    };

export interface ConversationPlan {
  readonly voice: VoiceName;
  readonly seed: number;
  readonly draftMs: number;
  readonly lives: readonly Ending[];
}

const LIVES = 8;
/** Calls that are worth dying in, and frequent ones. */
const AIMS: readonly (readonly [op: Op["do"], nthMax: number])[] = [
  ["start", 3],
  ["resume", 1],
  ["append", 5],
  ["commit", 5],
  ["discard", 1],
  ["toolStarted", 8],
  ["toolEnded", 8],
  ["suspend", 1],
  ["enqueue", 3],
  ["replace", 1],
  ["undo", 1],
  ["edit", 1],
  ["end", 3],
  ["abort", 1],
];

/** The lives of one session, a pure function of the seed. `points`: disk steps to be killed at. */
export function planConversation(seed: number, index: number, points: readonly KillPoint[] = []): ConversationPlan {
  const random = seededRandom(mixSeeds(seed, index, 0xc0de));
  return {
    voice: voiceNames[index % voiceNames.length]!,
    seed: mixSeeds(seed, index),
    draftMs: random.pick([20, 40, 200]),
    lives: Array.from({ length: LIVES }, () => ending(random, points)),
  };
}

function ending(random: Random, points: readonly KillPoint[]): Ending {
  if (points.length > 0 && random.chance(0.15)) {
    // At the first such step, or later: writes and syncs are frequent.
    const point = random.pick(points);
    return { by: "point", point: { ...point, nth: 1 + random.below(/write|sync/.test(point.step) ? 40 : 2) } };
  }
  const dice = random.next();
  if (dice < 0.12) return { by: "instant", us: random.below(120_000) };
  const us = random.chance(0.6) ? random.below(2_500) : random.below(40_000);
  if (dice < 0.3) return { by: "event", e: "pushed", nth: 1 + random.below(30), us: random.below(60_000) };
  if (dice < 0.42) return { by: "event", e: "effect", nth: 1 + random.below(6), us: random.below(12_000) };
  if (dice < 0.55) return { by: "event", e: "try", nth: 1 + random.below(80), us };
  const [op, nthMax] = random.pick(AIMS);
  return { by: "event", e: "try", op, nth: 1 + random.below(nthMax), us };
}
