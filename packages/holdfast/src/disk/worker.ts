import { HoldfastError } from "../errors.ts";

/**
 * Refuses what needs a disk, or Node's SQLite, in a Cloudflare Worker: it has no `node:sqlite`, and what it writes with
 * `node:fs` is in memory and soon gone. Throws NOT_SUPPORTED.
 */
export function assertNotInWorker(what: string): void {
  if (globalThis.navigator?.userAgent !== "Cloudflare-Workers") return;
  const message =
    `A Cloudflare Worker cannot have ${what}: it has no disk. Nothing was touched. ` +
    "Keep sessions in a Durable Object, with openStore of @holdfast/cloudflare.";
  throw new HoldfastError("NOT_SUPPORTED", message, { runtime: "Cloudflare-Workers" });
}
