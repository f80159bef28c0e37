export type { ClaimFilter, FailedClaim } from "./claims.ts";
export type { Claim, ClaimOptions, ClaimResult, Finish, WorkOptions } from "./fleet.ts";
export { grants, type Roles } from "./grants.ts";
export { type CounterName, type Latency, prometheusText, type StoreMetrics } from "./metrics.ts";
export { openPostgresStore, type PostgresStoreOptions } from "./open.ts";
export { type DropMonthsOptions, type DroppedMonths, dropMonths } from "./retention.ts";
export { openStore, type PostgresSessions } from "./sessions.ts";
