import { spawn } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";

/**
 * Stands between the terminal and the command: outlives what ends the command, and writes down how it ended. Arguments:
 * the file for that, and the command.
 */

const [file, ...command] = process.argv.slice(2);
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined);
const child = spawn(process.execPath, command, { stdio: "inherit" });
put(`${file}.pid`, String(child.pid));
child.on("exit", (code, signal) => put(file!, JSON.stringify({ code, signal })));

/** Whole or not at all: somebody waits for the file to appear. */
function put(path: string, text: string): void {
  writeFileSync(`${path}.tmp`, text);
  renameSync(`${path}.tmp`, path);
}
