/** The kill laboratory: real processes, real SIGKILL, at random instants and at named steps of the disk. */
export { attemptAny, attemptAppend, type Listener } from "./attempts.ts";
export { type CampaignOptions, type Receipt, runCampaign, type SessionFault } from "./campaign.ts";
export { type Found, foundIn, recordsOf, textOf } from "./content.ts";
export { type LifeEnd, live, type Worker, warmWorker } from "./life.ts";
export { Log, type Outcome, type Tried } from "./log.ts";
export { emptyView, type Fault, judge, judgeEpoch, type View, viewOf } from "./oracle.ts";
export { type DiskStep, type KillPoint, pausingDisk } from "./pausing-disk.ts";
export { type Attempt, type LabEvent, Lines, tell, tellLine } from "./pipe.ts";
export { type Place, temporaryPlace } from "./place.ts";
export { type Ending, type LifePlan, planSession } from "./plan.ts";
export {
  folderPoints,
  folderSteps,
  type KillSteps,
  largeWrite,
  type NamedPoint,
  sqlitePoints,
  sqliteSteps,
  tear,
} from "./points.ts";
export type { Command, Refusal } from "./puppet.ts";
export { OwnView, openSpec, type StoreModule, type StoreSpec } from "./stores.ts";
export { type Findings, Trial } from "./trial.ts";
export { type Death, programBeside, type SpawnOptions, Victim } from "./victim.ts";
export type { WorkerJob } from "./worker.ts";
export { type Profile, profiles, type Step, type WorkloadOptions, workload } from "./workload.ts";
