/** Real bad storage: small, full and failing disks, and power cuts. Linux, as root. */
export { LoopDisk, Machine, mib } from "./mounts.ts";
export { runPowerCuts } from "./power-cut.ts";
export { whyNoMounts, whyNoPowerCuts } from "./probe.ts";
