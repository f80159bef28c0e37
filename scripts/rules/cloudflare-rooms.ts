import type { PackageRooms } from "./rooms.ts";

/** The files of the store in Durable Objects, from the bottom to the top, with what each may import. */
export const CLOUDFLARE_ROOMS: PackageRooms = {
  sources: "packages/cloudflare/src/",
  base: ["storage.ts"],
  rooms: {
    // Every statement.
    "rows.ts": [],
    // The rows of lists.
    "list.ts": ["rows.ts"],
    // Records into the database.
    "journal.ts": ["rows.ts"],
    // The contract, put together.
    "store.ts": ["journal.ts", "list.ts", "rows.ts"],
    "open.ts": ["store.ts"],
    "index.ts": ["open.ts"],
  },
};
