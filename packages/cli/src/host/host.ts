export type * from "@holdfast/server/contract";
