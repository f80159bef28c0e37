import { statSync } from "node:fs";
import { HoldfastError, isHoldfastError } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { loadConfig, namedStore } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { onDisk, placeWithoutStore } from "../store/address.ts";
import { noStore, type OpenedStore, openBoth } from "../store/open.ts";
import { placeOf } from "../store/session-id.ts";

const APP = "holdfast copy";

/** Opens the source store, which must exist. */
export async function openSource(given: string): Promise<OpenedStore> {
  const address = namedStore(given);
  const place = placeWithoutStore(address);
  if (place !== null) noStore(place);
  return outliving(await openBoth(address, APP, loadConfig()));
}

/** Opens the target store, and creates it if missing. */
export async function openTarget(given: string): Promise<OpenedStore> {
  return outliving(await openBoth(namedStore(given), APP, loadConfig()));
}

/** Refuses a store in memory: a copy there is lost with this process, while its original may be in the trash. */
async function outliving(opened: OpenedStore): Promise<OpenedStore> {
  if (opened.journals.capabilities.durability !== "none") return opened;
  await opened.store.close();
  throw new CommandError(
    EXIT.usage,
    "USAGE",
    `${placeOf(opened.store)} exists only while this command runs, so nothing can be copied from or to it. Nothing was touched.`,
  );
}

/**
 * Checked before either is opened: a file with two names (a hard link, or a mount in a container) has a log and leases
 * beside each, and opening both would damage it.
 */
export function isOneFile(from: string, to: string): boolean {
  const [one, other] = [identityOf(from), identityOf(to)];
  return one !== null && one === other;
}

/** Null if nothing is there, or it cannot be inspected: opening it reports why. */
function identityOf(given: string): string | null {
  const place = onDisk(namedStore(given));
  if (!place) return null;
  try {
    const found = statSync(place.path, { bigint: true });
    return `${found.dev}:${found.ino}`;
  } catch (error) {
    if (error instanceof Error && "syscall" in error) return null;
    throw error;
  }
}

/**
 * Whether two addresses name one store. A folder has many paths and a database many names, but a session has one lease:
 * a holder in one store shows up in the other. Taking them for two stores and removing the "original" would destroy
 * both.
 */
export async function isSameStore(from: JournalStore, to: JournalStore, ids: readonly string[]): Promise<boolean> {
  if (from.url === to.url) return true;
  for (const id of ids) {
    if (!(await to.has(id))) return false;
    try {
      const { journal } = await to.open(id, { app: APP });
      try {
        return await isHeldInBoth(from, to, id);
      } finally {
        // Nothing was appended, so closing writes nothing.
        await journal.close();
      }
    } catch (error) {
      if (isHoldfastError(error, "SESSION_BUSY")) return isHeldInBoth(from, to, id);
      // One that cannot be opened proves nothing: try the next.
      if (!isHoldfastError(error)) throw error;
    }
  }
  return false;
}

async function isHeldInBoth(from: JournalStore, to: JournalStore, id: string): Promise<boolean> {
  const [here, there] = [await from.holder(id), await to.holder(id)];
  return (
    here !== null && there !== null && here.pid === there.pid && here.host === there.host && here.since === there.since
  );
}

export function cannotTakeOver(url: string): HoldfastError {
  const message = `The store ${url} cannot import sessions from another store. Nothing was touched.`;
  return new HoldfastError("NOT_SUPPORTED", message, { url });
}
