import type { PackageRooms } from "./rooms.ts";

/** The rooms of the PostgreSQL store, from the bottom to the top, with what each may import. */
export const POSTGRES_ROOMS: PackageRooms = {
  sources: "packages/postgres/src/",
  base: ["failure.ts", "options.ts"],
  rooms: {
    // Statements in, rows out: where the server is, the pool, the direct connection, what was counted.
    "connection/": [],
    // The tables: created, upgraded, split by month.
    "schema/": ["connection/"],
    // Who may write a session, and who is gone.
    "leases/": ["connection/"],
    // The lines of a journal, out of the database.
    "reading/": ["connection/"],
    // The rows of lists.
    "listing/": ["connection/", "leases/", "reading/"],
    // Whole sessions: found, created, moved to the trash, copied in, dropped by month.
    "sessions/": ["connection/", "leases/", "listing/", "schema/"],
    // Records into the database.
    "writing/": ["connection/", "leases/", "listing/", "reading/"],
    "search/": ["connection/", "listing/", "schema/"],
    // The store itself; how it is opened; what only this one can do.
    "store.ts": [...["connection/", "leases/", "listing/", "reading/", "schema/", "search/", "sessions/", "writing/"]],
    "open.ts": ["connection/", "schema/", "store.ts"],
    "sessions.ts": ["connection/", "open.ts", "store.ts"],
    "index.ts": ["connection/", "open.ts", "schema/", "sessions.ts", "sessions/"],
  },
};
