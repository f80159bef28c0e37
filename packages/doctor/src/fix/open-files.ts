import { readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * A process that has one of these files open; null if there is none, or if this system does not say (it has no /proc,
 * or the process belongs to another user).
 */
export function processWithOpen(paths: readonly string[]): number | null {
  const files = new Set(paths.flatMap((path) => identityOf(path) ?? []));
  for (const name of namesIn("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const descriptors = join("/proc", name, "fd");
    for (const descriptor of namesIn(descriptors)) {
      const link = join(descriptors, descriptor);
      // Asking for the link first: a look at what is behind it could wait for a network.
      if (!paths.includes(linkOf(link))) continue;
      const identity = identityOf(link);
      if (identity !== null && files.has(identity)) return Number(name);
    }
  }
  return null;
}

function namesIn(folder: string): string[] {
  return quietly(() => readdirSync(folder)) ?? [];
}

function linkOf(path: string): string {
  return quietly(() => readlinkSync(path)) ?? "";
}

function identityOf(path: string): string | null {
  const stat = quietly(() => statSync(path));
  return stat && `${stat.dev}:${stat.ino}`;
}

/** Processes end, and those of others do not let us look. */
function quietly<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && "syscall" in error) return null;
    throw error;
  }
}
