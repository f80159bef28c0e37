import type { SubjectCapabilities } from "./subject.ts";
import type { Trial } from "./trial.ts";

/** One thing that every store must do. It throws (usually an AssertionError) if the store does not. */
export interface Case {
  /** Unique among all cases. */
  readonly name: string;
  /** The guarantees and rules that it tests (`P1`, `S6`, `C23`): docs/GUARANTEES.md, docs/RULES.md. */
  readonly promises: readonly string[];
  /** Whether the case applies to a store with these capabilities. */
  readonly needs: (capabilities: SubjectCapabilities) => boolean;
  /** Takes many megabytes, or several seconds. */
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
