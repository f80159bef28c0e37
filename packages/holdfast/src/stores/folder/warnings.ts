import type { Disk } from "../../disk/disk.ts";
import { networkWarning } from "../network-warning.ts";

/** What this location cannot promise. */
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
