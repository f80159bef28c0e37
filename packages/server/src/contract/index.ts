export type * from "./host.ts";
export type * from "./item.ts";
export type * from "./served-host.ts";
