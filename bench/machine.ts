import * as fs from "node:fs";
import { arch, cpus, loadavg, platform, release, totalmem } from "node:os";
import { DatabaseSync } from "node:sqlite";

/** What the figures were measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGB: number;
  readonly system: string;
  readonly fileSystem: string;
  readonly node: string;
  readonly sqlite: string;
  /** Of the last minute, when the run began: what others were doing. */
  readonly load: number;
}

const KINDS = new Map([
  [0xef53, "ext4"],
  [0x58465342, "xfs"],
  [0x9123683e, "btrfs"],
  [0x01021994, "tmpfs"],
  [0x794c7630, "overlayfs"],
  [0x2fc12fc1, "zfs"],
  [0x1a, "apfs"],
]);

export function describeMachine(folder: string): Machine {
  const database = new DatabaseSync(":memory:");
  const { version } = database.prepare("SELECT sqlite_version() AS version").get() as { version: string };
  database.close();
  const { type } = fs.statfsSync(folder);
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
    fileSystem: KINDS.get(type) ?? `0x${type.toString(16)}`,
    node: process.version,
    sqlite: version,
    load: Math.round(loadavg()[0]! * 100) / 100,
  };
}

export function machineLines(machine: Machine): string[] {
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGB} GB; ${machine.system}; ${machine.fileSystem}`,
    `Node ${machine.node}, SQLite ${machine.sqlite}; load ${machine.load} at the start`,
  ];
}
