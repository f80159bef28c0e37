import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";

/**
 * The seed of a test file's random tests: HOLDFAST_SEED, or a new one. It is printed with the command that repeats the
 * run, also when all passes, so that a failure that shows elsewhere (a crash, a time-out) can be repeated too.
 */
export function seedOf(testFile: string, layer: string): number {
  const given = process.env["HOLDFAST_SEED"];
  const seed = given === undefined || given === "" ? Math.floor(Math.random() * 0x7fffffff) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`HOLDFAST_SEED is ${given}, and a seed is an integer`);
  const path = relative(process.cwd(), fileURLToPath(testFile)).split(sep).join("/");
  console.log(`seed ${seed}; to repeat: HOLDFAST_SEED=${seed} npx vitest run --project ${layer} ${path}`);
  return seed;
}

/**
 * Checks a property with the seed of its file. A failure is reported by fast-check with seed, path and the smallest
 * counterexample. HOLDFAST_EFFORT=50 makes fifty times as many runs.
 */
export function holds<Ts>(property: fc.IProperty<Ts>, seed: number, runs: number): void {
  fc.assert(property, { seed, numRuns: runs * Number(process.env["HOLDFAST_EFFORT"] ?? 1) });
}
