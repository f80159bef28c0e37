import type { Case } from "./case.ts";
import { conformanceCases } from "./cases.ts";
import type { Subject } from "./subject.ts";
import { later, Trial } from "./trial.ts";

/** A case that waits to be run on one subject. */
export interface ConformanceTest extends Case {
  /** The subject states that it cannot do what the case is about. */
  readonly skipped: boolean;
  /** Runs the case in a place of its own, and tidies up. */
  execute(): Promise<void>;
}

export interface ConformanceOptions {
  /** How long a case waits for what a store must give at some time; default 20 seconds. */
  readonly patienceMs?: number;
  /** When a case that has not ended is taken for one that never will; default: that is the runner's business. */
  readonly caseMs?: number;
}

/** The conformance suite, for any runner: each test passes if `execute` resolves. */
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
    // What the case found is the news; that the store cannot be closed after it is not.
    await trial.end().catch(() => undefined);
    throw error;
  }
  await trial.end();
}

/** What is needed of a test runner: vitest, node:test, jest and mocha have it. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly test: ((name: string, body: () => Promise<void>) => unknown) & {
    readonly skip: (name: string, body: () => Promise<void>) => unknown;
  };
}

/** Hands the suite to a test runner: `describeConformance(subject, { describe, test })`. */
export function describeConformance(subject: Subject, runner: Runner, options: ConformanceOptions = {}): void {
  runner.describe(`conformance of the ${subject.name} store`, () => {
    for (const found of conformance(subject, options)) {
      const { name, promises } = found;
      const register = found.skipped ? runner.test.skip : runner.test;
      register(promises.length > 0 ? `${name} (${promises.join(", ")})` : name, found.execute);
    }
  });
}
