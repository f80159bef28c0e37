export { type CounterName, type Latency, prometheusText, type StoreMetrics } from "./connection/metrics.ts";
export { openPostgresStore } from "./open.ts";
export type { PostgresStoreOptions } from "./options.ts";
export { grants, type Roles } from "./schema/grants.ts";
export { type DropMonthsOptions, type DroppedMonths, dropMonths } from "./sessions/retention.ts";
export { openStore, type PostgresSessions } from "./sessions.ts";
