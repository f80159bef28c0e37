export { durable } from "./durable.ts";
export type * from "./surface.ts";
