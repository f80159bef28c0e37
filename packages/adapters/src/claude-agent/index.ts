export { HoldfastSessionStore, type HoldfastSessionStoreOptions, type RecordingOptions } from "./session-store.ts";
export type {
  HookInput,
  HookMatcher,
  HookOutput,
  Hooks,
  InterruptedCall,
  SessionEntry,
  SessionInterruption,
  SessionKey,
} from "./surface.ts";
