export { grants, type Roles } from "./grants.ts";
export { openPostgresStore, type PostgresStoreOptions } from "./open.ts";
export { type DropMonthsOptions, type DroppedMonths, dropMonths } from "./retention.ts";
export { openStore } from "./sessions.ts";
