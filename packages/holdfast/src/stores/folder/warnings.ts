import type { Disk } from "../../disk/disk.ts";

/** What this location cannot promise. */
export function warningsOf(disk: Disk, root: string): string[] {
  const warnings: string[] = [];
  const network = disk.networkKind(root);
  if (network !== null) {
    warnings.push(
      `${root} is on a network file system (${network}): its locks and syncs are unreliable, so P1 and P6 are not promised there.`,
    );
  }
  const owner = disk.stat(root)?.owner ?? 0;
  if (process.geteuid?.() === 0 && owner !== 0) {
    warnings.push(
      `${root} belongs to user ${owner}, and this process runs as root: that user will not be able to read the sessions root writes. Run it as that user ("sudo -u #${owner}").`,
    );
  }
  return warnings;
}
