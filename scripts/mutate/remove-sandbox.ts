import { rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { killGroup } from "./runner-process.ts";

/**
 * Removes the folders of a sandbox, its arguments, when the campaign has ended, also if that was killed. Until then
 * each line of its input is the runner that now works in the folders, or empty if there is none.
 */

let runner = "";
for await (const line of createInterface(process.stdin)) runner = line;
// First of all the runner, with its workers and what its tests have started: they would write into the folders.
if (runner !== "") killGroup(Number(runner));
for (const folder of process.argv.slice(2)) await rm(folder, { recursive: true, force: true, maxRetries: 20 });
