import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/**
 * Loaded before a program (`--import`): it is killed by SIGKILL at its nth write to a journal, once half of it or all
 * of it is written. `KILL_AT`: "<n> half" or "<n> all".
 */
const [count, written] = (process.env["KILL_AT"] ?? "0 all").split(" ");
let left = Number(count);
const journals = new Set<number>();
const { openSync, writeSync } = fs;

fs.openSync = (...args) => {
  const fd = openSync(...args);
  journals.delete(fd);
  if (/sessions.*\.jsonl/.test(String(args[0]))) journals.add(fd);
  return fd;
};
fs.writeSync = ((fd: number, bytes: Uint8Array, ...rest: []) => {
  if (!journals.has(fd) || --left !== 0) return writeSync(fd, bytes, ...rest);
  writeSync(fd, written === "all" ? bytes : bytes.subarray(0, Math.ceil(bytes.length / 2)));
  process.kill(process.pid, "SIGKILL");
  return bytes.length;
}) as typeof fs.writeSync;
syncBuiltinESMExports();
