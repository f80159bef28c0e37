import { mixSeeds, type Random, seededRandom } from "../simulation/random.ts";
import type { KillPoint } from "./pausing-disk.ts";
import type { KillSteps, NamedPoint } from "./points.ts";
import type { Profile } from "./workload.ts";

/** When a life ends. */
export type Ending =
  /** This many microseconds after it began to open the store, wherever it is then: in recovery, or at work. */
  | { readonly by: "instant"; readonly us: number }
  /** This many microseconds after it announced its nth attempt. */
  | { readonly by: "attempt"; readonly nth: number; readonly us: number }
  /** At a disk step; with `us`, this long after that step began. */
  | { readonly by: "point"; readonly point: KillPoint; readonly us?: number };

export interface LifePlan {
  readonly profile: Profile;
  readonly ending: Ending;
  /** What the parent does to the dead writer's session: only look, or also repair it, append, and reopen it. */
  readonly after: "look" | "reopen";
}

/** The lives of one session, a pure function of the seed. The points take turns, so that each is reached. */
export function planSession(seed: number, index: number, steps: KillSteps): LifePlan[] {
  const random = seededRandom(mixSeeds(seed, index, 0x11fe));
  const plans: LifePlan[] = [];
  const point = steps.points[index % Math.max(1, steps.points.length)];
  if (point) {
    // Opening it in the parent would repair it, and the next life would find nothing torn.
    if (point.finds === "torn" && steps.tear) plans.push(...atPoint(random, steps.tear, "look"));
    plans.push(...atPoint(random, point, random.chance(0.5) ? "look" : "reopen"));
  }
  for (let lives = 2 + random.below(4); lives > 0; lives--) plans.push(anyLife(random, steps));
  return plans;
}

function atPoint(random: Random, point: NamedPoint, after: LifePlan["after"]): LifePlan[] {
  const life: LifePlan = { profile: point.profile, ending: { by: "point", point }, after };
  // A journal of some age, unless the point is in its creation.
  const young: LifePlan = { profile: "mixed", ending: { by: "attempt", nth: 3, us: random.below(500) }, after: "look" };
  return point.finds === "any" && random.chance(0.3) ? [young, life] : [life];
}

function anyLife(random: Random, { large }: KillSteps): LifePlan {
  const after = random.chance(0.5) ? "look" : "reopen";
  const dice = random.next();
  if (dice < 0.2) return { profile: profileOf(random), ending: { by: "instant", us: random.below(12_000) }, after };
  if (dice < 0.4 && large)
    return { profile: "large", ending: { by: "point", point: large, us: random.below(4000) }, after };
  if (dice < 0.4) return { profile: "large", ending: { by: "attempt", nth: 2, us: random.below(60_000) }, after };
  const nth = 1 + random.below(random.chance(0.3) ? 120 : 12);
  return { profile: profileOf(random), ending: { by: "attempt", nth, us: random.below(3000) }, after };
}

function profileOf(random: Random): Profile {
  return random.pick(["mixed", "mixed", "mixed", "epochs", "keyed"]);
}
