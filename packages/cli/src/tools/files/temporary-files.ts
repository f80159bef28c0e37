import { createHash, randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";

const HOST = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);
const OWN = randomBytes(4).toString("hex");
let count = 0;

/** Names of files being written, before their rename: they identify the machine, the process and its run. */
export const TEMPORARY = /^\.holdfast-([0-9a-f]{8})-(\d+)-([0-9a-f]{8})-\d+\.tmp$/u;

/** A name in the same folder, unique to this process: another one must not rename a half-written file. */
export function temporaryFor(path: string): string {
  count += 1;
  return join(dirname(path), `.holdfast-${HOST}-${process.pid}-${OWN}-${count}.tmp`);
}

const swept = new Set<string>();

/**
 * Removes files left by killed agents of this machine. Once per folder is enough: this process leaves none while it
 * lives. Never makes a write fail.
 */
export async function sweepTemporary(folder: string): Promise<void> {
  if (swept.has(folder)) return;
  swept.add(folder);
  for (const name of await readdir(folder).catch(unlessSystem([])))
    if (isLeft(name)) await rm(join(folder, name), { force: true }).catch(unlessSystem(undefined));
}

/** For a folder that may be written but not read, or another user's file in a shared folder such as /tmp. */
function unlessSystem<T>(otherwise: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Error && "code" in error) return otherwise;
    throw error;
  };
}

function isLeft(name: string): boolean {
  const [, host, pid, life] = TEMPORARY.exec(name) ?? [];
  if (host !== HOST) return false;
  if (Number(pid) === process.pid) return life !== OWN;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    // Any other error (EPERM) means that the process exists.
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
}
