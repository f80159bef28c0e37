export type * from "@holdfast/server/internal/contract";
