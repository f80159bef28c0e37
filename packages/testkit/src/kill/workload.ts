import type { Durability } from "holdfast/store";
import { mixSeeds, type Random, seededRandom } from "../simulation/random.ts";
import type { Attempt } from "./pipe.ts";

/** One step of the worker. Appends carry their attempt; other steps act on the journal as it is. */
export type Step =
  | { readonly do: "append"; readonly attempt: Attempt; readonly durability?: Durability; readonly sync?: boolean }
  /** Appends that are all in flight at once. */
  | { readonly do: "burst"; readonly attempts: readonly Attempt[] }
  | { readonly do: "epoch"; readonly attempt: Attempt }
  | { readonly do: "flush" | "reopen" | "pack" | "look" };

export const profiles = ["mixed", "large", "epochs", "keyed"] as const;
/** The kind of a life: a bit of everything, writes of megabytes, many replacements, or retries. */
export type Profile = (typeof profiles)[number];

export interface WorkloadOptions {
  readonly seed: number;
  readonly life: number;
  readonly profile: Profile;
  /** The first unused id. */
  readonly nextId: number;
  /** Keyed attempts of earlier lives with an unknown outcome: a client would send them again. */
  readonly retry: readonly Attempt[];
  /** Every append uses the durability of the store. */
  readonly plain?: boolean;
}

const LARGE_CHARS = 7_000_000;
const UNIT_MAX = 6;
const BURST_MAX = 24;

/** What one life of a writer does, without end: a pure function of the seed. */
export function* workload(options: WorkloadOptions): Generator<Step, never> {
  const random = seededRandom(mixSeeds(options.seed, options.life));
  let id = options.nextId;
  const keyed: Attempt[] = [...options.retry];
  const small = (): number => (random.chance(0.2) ? random.below(20_000) : random.below(1200)) + 20;
  const fresh = (kind: Attempt["kind"], parts: number, chars: number): Attempt => ({ id: id++, kind, parts, chars });
  const append = (): Attempt => fresh("append", random.chance(0.3) ? 2 + random.below(UNIT_MAX - 1) : 1, small());
  const withKey = (): Attempt => {
    const again = keyed.length > 0 && random.chance(0.4) ? random.pick(keyed.slice(-16)) : undefined;
    const next = append();
    const attempt = again ?? { ...next, key: `key ${next.id}` };
    if (!again) keyed.push(attempt);
    return attempt;
  };
  const large = (): Attempt => {
    // A unit of several large records can be torn between its lines, a single record only inside.
    const parts = random.chance(0.3) ? 2 : 1;
    return fresh("append", parts, Math.ceil((LARGE_CHARS * (0.2 + 0.8 * random.next())) / parts));
  };
  const replace = (): Step => ({ do: "epoch", attempt: fresh("epoch", 1 + random.below(40), small()) });

  for (const attempt of options.retry) yield { do: "append", attempt };
  for (;;) {
    const next = step(random, options.profile, { append, withKey, large, replace });
    if (next.do === "append" && options.plain) yield { do: "append", attempt: next.attempt };
    else yield next;
  }
}

interface Makers {
  append(): Attempt;
  withKey(): Attempt;
  large(): Attempt;
  replace(): Step;
}

function step(random: Random, profile: Profile, make: Makers): Step {
  const dice = random.next();
  if (profile === "large" && dice < 0.6) return { do: "append", attempt: make.large() };
  if (profile === "epochs" && dice < 0.45) return make.replace();
  if (profile === "epochs" && dice < 0.55) return { do: "pack" };
  if (profile === "keyed" && dice < 0.6) return { do: "append", attempt: make.withKey() };
  const kind = random.next();
  if (kind < 0.3) return { do: "append", attempt: make.append() };
  if (kind < 0.36) return { do: "append", attempt: make.append(), sync: true };
  if (kind < 0.46) return { do: "append", attempt: make.append(), durability: random.pick(["process", "power"]) };
  if (kind < 0.56) return { do: "append", attempt: make.withKey() };
  if (kind < 0.8) return { do: "burst", attempts: Array.from({ length: 2 + random.below(BURST_MAX) }, make.append) };
  if (kind < 0.84) return { do: "flush" };
  if (kind < 0.9) return make.replace();
  if (kind < 0.95) return { do: "reopen" };
  if (kind < 0.97) return { do: "pack" };
  return { do: "look" };
}
