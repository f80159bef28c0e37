export { HoldfastSessionStore, type HoldfastSessionStoreOptions, type RecordingOptions } from "./session-store.ts";
export type { Hooks, SessionInterruption } from "./surface.ts";
