import { createHash, randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";

const HOST = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);
const OWN = randomBytes(4).toString("hex");
let count = 0;

/** Names of files that are being written, and will have another one: by which machine, process and life of it. */
export const TEMPORARY = /^\.holdfast-([0-9a-f]{8})-(\d+)-([0-9a-f]{8})-\d+\.tmp$/u;

/** Beside the file. No other process has the same: else it would rename what this one has half written. */
export function temporaryFor(path: string): string {
  count += 1;
  return join(dirname(path), `.holdfast-${HOST}-${process.pid}-${OWN}-${count}.tmp`);
}

const swept = new Set<string>();

/**
 * Removes what killed agents of this machine have left behind. Once for each folder: this process leaves nothing while
 * it lives. No write fails by it.
 */
export async function sweepTemporary(folder: string): Promise<void> {
  if (swept.has(folder)) return;
  swept.add(folder);
  for (const name of await readdir(folder).catch(unlessSystem([])))
    if (isLeft(name)) await rm(join(folder, name), { force: true }).catch(unlessSystem(undefined));
}

/** A folder that may be written to, but not read; another user's file in a folder for all, as /tmp is. */
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
    // Somebody else's process is one that lives.
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
}
