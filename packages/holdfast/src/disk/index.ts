export type * from "./disk.ts";
export { nodeDisk } from "./node-disk.ts";
