/** The simulated disk of S22, and the simulation that puts a crash or a fault at every step of a store's work. */
export {
  type CrashOptions,
  type FaultOptions,
  simulateCrashes,
  simulateFaults,
} from "./drive.ts";
export { type FaultName, faultNames } from "./faults.ts";
export { folderStore } from "./folder-store.ts";
export type { SimulationOptions } from "./options.ts";
export {
  type Action,
  allocating,
  changing,
  crashAt,
  type FaultWindow,
  faultIn,
  faulty,
  labelOf,
  type Operation,
  type Plan,
  type Step,
  syncing,
  writing,
} from "./plan.ts";
export { mixSeeds, type Random, seededRandom } from "./random.ts";
export { Runner, type RunnerOptions, type StoreFactory } from "./runner.ts";
export { Crashed, SimulatedDisk, type SimulatedDiskOptions } from "./simulated-disk.ts";
export { type ExtremeName, everySurvival, extremeNames, extremes, type Survival, seededSurvival } from "./survival.ts";
export { type Failure, type Report, tellFailures } from "./tally.ts";
export { makeWorkload, type ProfileName, profileNames, sessionId, type Task, type Workload } from "./workload.ts";
