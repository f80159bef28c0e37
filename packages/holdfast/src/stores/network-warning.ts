import type { Disk } from "../disk/disk.ts";

/**
 * The warning for a store on a file system whose locks and syncs cannot be trusted; null if they can. `store`: its
 * path.
 */
export function networkWarning(disk: Disk, folder: string, store: string = folder): string | null {
  const network = disk.networkKind(folder);
  if (network === null) return null;
  return (
    `${store} is on a network file system (${network}), whose locks and syncs are unreliable: ` +
    "acknowledged records may not survive a crash, and two processes may write to one session. Move the store to a local disk."
  );
}
