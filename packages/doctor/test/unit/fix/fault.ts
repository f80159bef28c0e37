import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/** The calls that change a disk. */
const WRITES = [
  ...(["chmodSync", "copyFileSync", "fchmodSync", "fsyncSync", "linkSync"] as const),
  ...(["mkdirSync", "renameSync", "rmdirSync", "rmSync", "unlinkSync", "writeSync"] as const),
  "writeFileSync",
] as const;
/** These need no space. */
const REMOVALS = ["rmdirSync", "rmSync", "unlinkSync"];

/** `killed`: nothing is written any more. `kill`: this process really dies. `full`: the disk refuses this once. */
export type Fault = "killed" | "kill" | "full";

/** From call number `at` on, counted from 1, until it is disposed. */
export function failAt(at: number, fault: Fault): Disposable & { readonly hasFailed: boolean } {
  let count = 0;
  const functions = fs as unknown as Record<string, (...args: unknown[]) => unknown>;
  const originals = new Map(WRITES.map((name) => [name, functions[name]!]));
  for (const [name, original] of originals) {
    if (fault === "full" && REMOVALS.includes(name)) continue;
    functions[name] = (...args) => {
      // No power is cut here: what a disk is asked to keep takes long, and shows nothing.
      const call = name === "fsyncSync" ? () => undefined : original;
      if (++count < at || (count > at && fault === "full")) return call(...args);
      // Half of a write is written.
      const bytes = args[1];
      if (count === at && name === "writeSync" && bytes instanceof Uint8Array)
        original(args[0], bytes.subarray(0, bytes.length / 2));
      if (fault === "kill") process.kill(process.pid, "SIGKILL");
      throw Object.assign(new Error(`ENOSPC: no space left on device, ${name}`), { code: "ENOSPC", syscall: name });
    };
  }
  syncBuiltinESMExports();
  return {
    get hasFailed() {
      return count >= at;
    },
    [Symbol.dispose]() {
      for (const [name, original] of originals) functions[name] = original;
      syncBuiltinESMExports();
    },
  };
}
