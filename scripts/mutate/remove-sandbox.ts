import { rmSync } from "node:fs";
import type { RunnerOptions } from "./runner.ts";
import { killGroup } from "./runner-process.ts";

/** Ends a runner whose campaign has died, and removes its folders. Arguments: its process, and its options. */

const [pid, options] = process.argv.slice(2);
const { root, scratch } = JSON.parse(options!) as RunnerOptions;
killGroup(Number(pid));
for (const folder of [root, scratch]) rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
