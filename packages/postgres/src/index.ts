export { openStore } from "./sessions.ts";
export { openPostgresStore, type PostgresStoreOptions } from "./store.ts";
