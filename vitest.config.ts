import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./scripts/test-order.ts";
import { filesOf, OLDEST_LAYER } from "./scripts/test-tiers.ts";

const conditions = ["holdfast-source", "node", "default"];

/**
 * One project per layer of proof (docs/TESTING.md). Run one with `npx vitest run --project <layer>`. The time is what a
 * test takes if it hangs: no test that works comes near it, however busy the machine is. No test gets a second try.
 */
const layer =
  (name: string, timeoutMs: number, globalSetup: string[] = [], env: Record<string, string> = {}) =>
  (tier: string) => ({
    extends: true as const,
    test: { name, ...filesOf(name, tier), testTimeout: timeoutMs, hookTimeout: timeoutMs, globalSetup, env, retry: 0 },
  });

/** Layers whose tests run the compiled command. */
const compiled = ["packages/cli/test/build.ts"];

/** What the agent keeps of this user outside of its journals: tests leave nothing in the real place. */
const state = mkdtempSync(join(tmpdir(), "holdfast-state-"));
process.once("exit", () => rmSync(state, { recursive: true, force: true }));
/** Tests start thousands of processes from sources. Each takes a third of the time if it finds them compiled. */
const compiledCode = join(state, "compiled");

const layers = [
  layer("unit", 300_000),
  layer("conformance", 300_000),
  layer("simulation", 300_000),
  layer("kill", 300_000, compiled),
  layer("runtimes", 300_000, [...compiled, "packages/holdfast/test/runtimes/install.ts"]),
  layer("corpus", 300_000),
  layer("machine", 300_000),
  layer("end-to-end", 300_000, compiled),
  layer("acp-agents", 300_000, [...compiled, "packages/cli/test/acp-agents/install.ts"]),
  layer("real", 300_000),
  layer("browser", 300_000, ["packages/web/test/browser/build.ts"]),
];

// An optional dependency, which npm installs where there are binaries for it.
if (existsSync(new URL("node_modules/postgres-14-linux-x64", import.meta.url)))
  layers.push(layer(OLDEST_LAYER, 300_000, [], { HOLDFAST_PG_MAJOR: "14" }));
else console.log("not run: the layer `oldest`. There is no PostgreSQL 14 for this system among the optional packages.");

/** `--mode short` or `--mode long` selects a tier (scripts/test-tiers.ts). */
export default defineConfig(({ mode }) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    env: { XDG_STATE_HOME: state, XDG_CONFIG_HOME: state, NODE_COMPILE_CACHE: compiledCode },
    // One second, the default, is too little on a busy machine. What is there already is not waited for.
    expect: { poll: { timeout: 60_000 } },
    // Many tests wait: for words that stream, for screens, servers and disks. So three files at a time pay off, also on
    // two cores (vitest's default: one). No test depends on how busy the machine is (docs/TESTING.md).
    maxWorkers: Math.max(3, availableParallelism() - 1),
    sequence: { sequencer: LongestFirst },
    projects: layers.map((inTier) => inTier(mode)).filter(({ test }) => test.include.length > 0),
  },
}));
