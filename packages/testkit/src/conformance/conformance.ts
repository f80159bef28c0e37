import type { Case } from "./case.ts";
import { conformanceCases } from "./cases.ts";
import type { Subject } from "./subject.ts";
import { later, Trial } from "./trial.ts";

/** A case, ready to run on one subject. */
export interface ConformanceTest extends Case {
  /** The subject states that it does not support what the case tests. */
  readonly skipped: boolean;
  /** Runs the case in its own place, and cleans up. */
  execute(): Promise<void>;
}

export interface ConformanceOptions {
  /** How long a case waits for something that a store must deliver eventually. Default: 20 seconds. */
  readonly patienceMs?: number;
  /** When a case that has not ended counts as hanging. Default: the runner decides. */
  readonly caseMs?: number;
}

/** The conformance suite, for any runner. A test passes if `execute` resolves. */
export function conformance(subject: Subject, options: ConformanceOptions = {}): readonly ConformanceTest[] {
  return conformanceCases.map((found) => ({
    ...found,
    skipped: !found.needs(subject.capabilities),
    execute: () => runCase(found, subject, options),
  }));
}

export async function runCase(found: Case, subject: Subject, options: ConformanceOptions = {}): Promise<void> {
  const trial = new Trial(await subject.fresh(), subject.capabilities, options.patienceMs);
  try {
    const running = later(found.run(trial));
    await (options.caseMs === undefined ? running : trial.within(running, "the end of the case", options.caseMs));
  } catch (error) {
    // Report what the case found, not that the store could not be closed afterwards.
    await trial.end().catch(() => undefined);
    throw error;
  }
  await trial.end();
}

/** What the suite needs of a test runner: vitest, node:test, jest and mocha have it. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly test: ((name: string, body: () => Promise<void>) => unknown) & {
    readonly skip: (name: string, body: () => Promise<void>) => unknown;
  };
}

/** Registers the suite with a test runner: `describeConformance(subject, { describe, test })`. */
export function describeConformance(subject: Subject, runner: Runner, options: ConformanceOptions = {}): void {
  runner.describe(`conformance of the ${subject.name} store`, () => {
    for (const found of conformance(subject, options)) {
      const { name, promises } = found;
      const register = found.skipped ? runner.test.skip : runner.test;
      register(promises.length > 0 ? `${name} (${promises.join(", ")})` : name, found.execute);
    }
  });
}
