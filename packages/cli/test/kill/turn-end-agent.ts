import { writeSync } from "node:fs";
import type { Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { deadlyDisk } from "../../../holdfast/test/deadly-disk.ts";
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
  stores: {},
  mcpServers: {},
  windowTokens: undefined,
  passEnv: [],
  redact: false,
  pager: undefined,
  offlineDelayMs: 0,
  debug: false,
};

function openDeadly({ folder, killAt }: Orders): Promise<Store> {
  const disk = deadlyDisk({ killAfter: killAt });
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
