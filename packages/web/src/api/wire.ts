export type * from "@holdfast/server/internal/wire";
