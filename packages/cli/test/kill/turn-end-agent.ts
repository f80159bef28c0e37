import { writeSync } from "node:fs";
import type { Store } from "holdfast";
import { type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore, openStoreWith } from "holdfast/store";
import { LocalHost } from "../../src/host/local/local-host.ts";
import { APP } from "../../src/store/app.ts";

/** The reference agent, killed at one write to a journal: one turn, as `holdfast run` would do it. */
export interface Orders {
  readonly folder: string;
  readonly work: string;
  readonly prompt: string;
  /** SIGKILL right after the nth write to a journal; 0: never. */
  readonly killAt: number;
}

export const CONFIG = {
  store: undefined,
  model: "offline",
  baseUrl: undefined,
  allow: ["write", "shell", "edit"],
  ask: [],
  deny: [],
  mcpServers: {},
  windowTokens: undefined,
  passEnv: [],
  redact: false,
  pager: undefined,
  offlineDelayMs: 0,
  debug: false,
};

function openDeadly({ folder, killAt }: Orders): Promise<Store> {
  let left = killAt;
  const deadly = (file: DiskFile): DiskFile => ({
    path: file.path,
    read: (into, offset, length, position) => file.read(into, offset, length, position),
    write: (bytes) => {
      const written = file.write(bytes);
      if (--left === 0) process.kill(process.pid, "SIGKILL");
      return written;
    },
    writeAt: (bytes, position) => file.writeAt(bytes, position),
    stat: () => file.stat(),
    truncate: (size) => file.truncate(size),
    sync: () => file.sync(),
    syncNow: () => file.syncNow(),
    close: () => file.close(),
  });
  const disk = {
    ...nodeDisk,
    open: (path: string, mode: Parameters<typeof nodeDisk.open>[1]) => {
      const file = nodeDisk.open(path, mode);
      return /sessions.*\.jsonl/.test(path) ? deadly(file) : file;
    },
  };
  return openStoreWith((options) => openFolderStore(folder, { ...options, disk }), {
    app: APP,
    recordsToolStarts: true,
  });
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const host = new LocalHost(await openDeadly(orders), CONFIG, "nobody");
  const chat = await host.create({ cwd: orders.work });
  await chat.prompt(orders.prompt);
  await chat.settled();
  writeSync(1, "done\n");
  await host.close();
}
