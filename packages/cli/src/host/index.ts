export type * from "../transcript/item.ts";
export type * from "./host.ts";
