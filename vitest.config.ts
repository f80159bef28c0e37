import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

const conditions = ["holdfast-source", "node", "default"];

/** One project per layer of proof (DESIGN.md, section 8). Run one with `npx vitest run --project <layer>`. */
const layer = (name: string, timeoutMs: number, globalSetup: string[] = [], retry = 0) => ({
  extends: true as const,
  test: {
    name,
    include: [`packages/*/test/${name}/**/*.test.ts`],
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    globalSetup,
    retry,
  },
});

/** Layers whose tests run the compiled command. */
const compiled = ["packages/cli/test/build.ts"];

/** What the agent keeps of this user outside of its journals: tests leave nothing in the real place. */
const state = mkdtempSync(join(tmpdir(), "holdfast-state-"));
process.once("exit", () => rmSync(state, { recursive: true, force: true }));

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    env: { XDG_STATE_HOME: state },
    // Many tests wait for processes and disks, so two files at a time pay off, also on two cores (default: one).
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      layer("unit", 30_000),
      layer("conformance", 60_000),
      layer("simulation", 170_000),
      layer("kill", 170_000, compiled),
      layer("runtimes", 170_000, [...compiled, "packages/holdfast/test/runtimes/install.ts"]),
      layer("corpus", 60_000),
      layer("machine", 170_000),
      // Screens are read from outside while they change: on a busy machine a look can come too late. The report names
      // each retry.
      layer("end-to-end", 170_000, compiled, 1),
    ],
  },
});
