/** The kill laboratory: real processes, real SIGKILL, at random instants and at named steps of the disk. */
export { attemptAppend } from "./attempts.ts";
export { runCampaign } from "./campaign.ts";
export { type Worker, warmWorker } from "./life.ts";
export { Log } from "./log.ts";
export { judge, judgeEpoch, viewOf } from "./oracle.ts";
export { type KillPoint, pausingDisk } from "./pausing-disk.ts";
export { type Attempt, type LabEvent, Lines, tellLine } from "./pipe.ts";
export { temporaryPlace } from "./place.ts";
export type { LifePlan } from "./plan.ts";
export { folderPoints, folderSteps, type NamedPoint, sqlitePoints, tear } from "./points.ts";
export type { Command, Refusal } from "./puppet.ts";
export { OwnView, openSpec, type StoreSpec } from "./stores.ts";
export { Trial } from "./trial.ts";
export { programBeside, type SpawnOptions, Victim } from "./victim.ts";
export type { WorkerJob } from "./worker.ts";
