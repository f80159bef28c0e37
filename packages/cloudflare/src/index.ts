export { openDurableObjectStore, openStore } from "./open.ts";
export type { DurableObjectContext } from "./storage.ts";
