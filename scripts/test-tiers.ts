/**
 * Which tests run when. `npm test` runs the short tier, `npm run test:long` the long one; each test file is in one of
 * them. Without a tier (`npx vitest run`) everything runs.
 */
export type Tier = "short" | "long";

/** Layers that are in the short tier as a whole. Every other layer is in the long one, except for the files below. */
const SHORT_LAYERS: readonly string[] = ["unit", "corpus", "conformance"];

/** The share of the other layers that is in the short tier: simulated crashes, real kills, a real terminal. */
export const SHORT_FILES: readonly string[] = [
  "packages/holdfast/test/simulation/crash-sample.test.ts",
  "packages/holdfast/test/kill/campaign-sample.test.ts",
  "packages/cli/test/end-to-end/chat-interrupted.test.ts",
];

/** Runs the PostgreSQL store's tests once more, on the oldest supported server. Only in the long tier. */
export const OLDEST_LAYER = "oldest";
const OLDEST_FILES = "packages/postgres/test/{unit,conformance,kill}/**/*.test.ts";

export interface TestFiles {
  readonly include: string[];
  readonly exclude: string[];
}

/** The test files of a layer that are in this tier; all of them for any other word. */
export function filesOf(layer: string, tier: Tier | string): TestFiles {
  if (layer === OLDEST_LAYER) return { include: tier === "short" ? [] : [OLDEST_FILES], exclude: [] };
  const all = [`packages/*/test/${layer}/**/*.test.ts`];
  const share = SHORT_FILES.filter((file) => file.split("/")[3] === layer);
  if (tier !== "short" && tier !== "long") return { include: all, exclude: [] };
  if (SHORT_LAYERS.includes(layer)) return { include: tier === "short" ? all : [], exclude: [] };
  return tier === "short" ? { include: share, exclude: [] } : { include: all, exclude: share };
}
