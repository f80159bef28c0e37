import type { Store } from "holdfast";
import { type Config, type Flags, loadConfig } from "../config.ts";

/** Opens the configured store for the length of a command. */
export async function withStore<T>(flags: Flags, work: (store: Store, config: Config) => Promise<T>): Promise<T> {
  const config = loadConfig(flags);
  const { openStore } = await import("holdfast");
  await using store = await openStore(config.store, { app: "holdfast" });
  for (const warning of store.warnings) process.stderr.write(`holdfast: ${warning}\n`);
  return await work(store, config);
}
