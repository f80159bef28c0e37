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

/** Before call number `at`, from 1, something happens: this process dies, or the disk refuses. */
export function failAt(at: number, fault: "kill" | "full"): void {
  let count = 0;
  for (const name of WRITES) {
    if (fault === "full" && REMOVALS.includes(name)) continue;
    const original = fs[name] as (...args: unknown[]) => unknown;
    const replaced = (...args: unknown[]): unknown => {
      if (++count !== at) return original(...args);
      // Half of a write is written.
      const bytes = args[1];
      if (name === "writeSync" && bytes instanceof Uint8Array) original(args[0], bytes.subarray(0, bytes.length / 2));
      if (fault === "kill") process.kill(process.pid, "SIGKILL");
      throw Object.assign(new Error(`ENOSPC: no space left on device, ${name}`), { code: "ENOSPC", syscall: name });
    };
    (fs as unknown as Record<string, unknown>)[name] = replaced;
  }
  syncBuiltinESMExports();
}
