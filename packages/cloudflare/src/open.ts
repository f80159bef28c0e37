import { HoldfastError, type Store, type StoreOptions } from "holdfast";
import type { StoreBaseOptions } from "holdfast/internal";
import { type JournalStore, openStoreWith } from "holdfast/store";
import type { DurableObjectContext } from "./storage.ts";
import { DurableObjectStore } from "./store.ts";

/** The oldest compatibility date that was tested. */
const COMPATIBLE_SINCE = "2026-05-01";

/**
 * Opens the store in this Durable Object: `openStore(this.ctx)`. The class must have an SQLite database
 * (`new_sqlite_classes`). The store shares it with the tables of the application; its own begin with `holdfast_`.
 *
 * When an append resolves, Cloudflare has confirmed the write (`storage.sync`). Sessions that are held elsewhere in the
 * object are refused (SESSION_BUSY), and every lease ends with the object. Throws FORMAT_NEWER, STORE_FULL, STORE_IO,
 * and NOT_SUPPORTED if the object's class has no SQLite database, or the Worker's compatibility date is too old.
 */
export function openStore(ctx: DurableObjectContext, options: StoreOptions = {}): Promise<Store> {
  return openStoreWith((given) => openDurableObjectStore(ctx, given), options);
}

/** The journals below the sessions, for tools that copy or verify them. */
export async function openDurableObjectStore(
  ctx: DurableObjectContext,
  options: StoreBaseOptions = {},
): Promise<JournalStore> {
  assertTimers();
  return new DurableObjectStore(ctx, options);
}

/** With an older date, a timer is a number, and an append would fail in the middle. */
function assertTimers(): void {
  const timer: unknown = setTimeout(() => {}, 0);
  if (typeof timer === "object") return;
  const message =
    "Holdfast needs the timers and modules of Node.js, as Workers have them with a newer compatibility date. Nothing was touched. " +
    `Set compatibility_date to ${COMPATIBLE_SINCE} or later, with the flag nodejs_compat.`;
  throw new HoldfastError("NOT_SUPPORTED", message, { compatible: COMPATIBLE_SINCE });
}
