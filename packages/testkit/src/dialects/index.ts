import type { Runner } from "../conformance/conformance.ts";
import { dialectCases } from "./cases.ts";
import type { DialectSubject } from "./subject.ts";

export { dialectCases } from "./cases.ts";
export type { DialectCase } from "./sample.ts";
export type { DialectSubject, SampleCall } from "./subject.ts";

/** Registers the check of a dialect with a test runner: `describeDialect(subject, { describe, test })`. */
export function describeDialect<M>(
  subject: DialectSubject<M>,
  { describe, test }: Pick<Runner, "describe" | "test">,
): void {
  describe(`the dialect ${subject.dialect.name}`, () => {
    for (const { name, run } of dialectCases(subject)) test(name, async () => run());
  });
}
