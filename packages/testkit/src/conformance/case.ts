import type { SubjectCapabilities } from "./subject.ts";
import type { Trial } from "./trial.ts";

/** One thing that every store must do. It throws (an AssertionError, mostly) if the store does not. */
export interface Case {
  /** Its own, among all cases. */
  readonly name: string;
  /** Which promises, rules and cases of the documents it shows (`P1`, `S6`, `C23`). */
  readonly promises: readonly string[];
  /** Whether a store with these capabilities can be asked at all. */
  readonly needs: (capabilities: SubjectCapabilities) => boolean;
  /** Takes many megabytes, or some seconds. */
  readonly heavy: boolean;
  run(trial: Trial): Promise<void>;
}

type Options = Partial<Pick<Case, "needs" | "heavy">>;

export function conformanceCase(
  name: string,
  promises: readonly string[],
  run: (trial: Trial) => Promise<void>,
  options: Options = {},
): Case {
  return { name, promises, needs: options.needs ?? (() => true), heavy: options.heavy ?? false, run };
}
