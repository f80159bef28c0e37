import { type CrashOptions, folderStore, simulateCrashes, tellFailures } from "@holdfast/testkit/internal/simulation";
import { expect } from "vitest";

/**
 * The folder store on the simulated disk (S22): a crash before every step that changes the disk. The oracle is
 * `acknowledged ⊆ recovered ⊆ attempted`, in order, units whole, nothing twice, nothing cut that is not in quarantine;
 * then append, reopen and compare again. A failure names its seed, its step and the command that repeats it. Without
 * limit: `npm run simulate`.
 */
export async function survives(options: Omit<CrashOptions, "open">, statesMin: number): Promise<void> {
  const report = await simulateCrashes({ open: folderStore, ...options });
  expect(tellFailures(report.failures)).toBe("");
  // A workload that changes the disk at few steps, or a simulation that skips them, would prove little.
  expect(report.states).toBeGreaterThan(statesMin);
}
