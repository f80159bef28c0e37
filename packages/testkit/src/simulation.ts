/** The simulated disk of S22, and the simulation that puts a crash or a fault at every step of a store's work. */

export { type CrashOptions, type FaultOptions, simulateCrashes, simulateFaults } from "./simulation/drive.ts";
export type { StoreFactory } from "./simulation/runner.ts";
export { SimulatedDisk, type SimulatedDiskOptions } from "./simulation/simulated-disk.ts";
export { type Report, tellFailures } from "./simulation/tally.ts";
