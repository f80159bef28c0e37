import type { TestContext } from "vitest";

/** Where the machine does not allow a test, it is reported as not run, and why; it never passes in silence. */
export function needs(context: TestContext, what: string, why: string | null): void {
  if (why === null) return;
  console.log(`not run: ${what} (${why})`);
  context.skip(why);
}
