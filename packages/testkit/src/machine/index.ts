/** Real bad storage: small, full and failing disks, and power cuts. Linux, as root. */
export { Cutter } from "./cutter.ts";
export { LoopDisk, Machine, mib } from "./mounts.ts";
export { type PowerCutOptions, type PowerReceipt, runPowerCuts } from "./power-cut.ts";
export { whyNoMounts, whyNoPowerCuts } from "./probe.ts";
