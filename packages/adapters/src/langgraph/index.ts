export { HoldfastSaver, type HoldfastSaverOptions, type ThreadSummary } from "./saver.ts";
