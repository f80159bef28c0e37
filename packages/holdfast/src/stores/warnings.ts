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

/** What the location of a folder store cannot promise. */
export function warningsOf(disk: Disk, root: string): string[] {
  const warnings: string[] = [];
  const network = networkWarning(disk, root);
  if (network !== null) warnings.push(network);
  const owner = disk.stat(root)?.owner ?? 0;
  if (process.geteuid?.() === 0 && owner !== 0) {
    warnings.push(
      `${root} belongs to user ${owner}, and this process runs as root: that user will not be able to read the sessions root writes. Run it as that user ("sudo -u #${owner}").`,
    );
  }
  return warnings;
}
