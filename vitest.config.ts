import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

const conditions = ["holdfast-source", "node", "default"];

/** One project per layer of proof (DESIGN.md, section 8): each can be run by itself with `npx vitest run --project <layer>`. */
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
    // Many tests wait for processes and disks, so that two files at once do well even on two cores, where the default is one.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      layer("unit", 30_000),
      layer("conformance", 60_000),
      layer("simulation", 170_000),
      layer("kill", 170_000, compiled),
      layer("corpus", 60_000),
      layer("machine", 170_000),
      // What a screen shows is looked at from outside, while it changes: on a busy machine a look can come too late. The report names what was tried again.
      layer("end-to-end", 170_000, compiled, 1),
    ],
  },
});
