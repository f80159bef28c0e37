/** The simulated disk of S22, and the simulation that puts a crash or a fault at every step of a store's work. */
export { type CrashOptions, simulateCrashes, simulateFaults } from "./drive.ts";
export { type FaultName, faultNames } from "./faults.ts";
export { folderStore } from "./folder-store.ts";
export { crashAt } from "./plan.ts";
export { type Random, seededRandom } from "./random.ts";
export { Runner } from "./runner.ts";
export { Crashed, SimulatedDisk } from "./simulated-disk.ts";
export { extremes } from "./survival.ts";
export { tellFailures } from "./tally.ts";
export { makeWorkload, type ProfileName, sessionId } from "./workload.ts";
