import { registerHooks } from "node:module";

/**
 * Imported before DeepSeek Harness. npm has no release of its file watcher with the method that this release calls at
 * its start, so that it could not run at all. Here it does not watch its own settings; sessions are not concerned.
 */
const WATCH = "async function watchUserPatches(ctx, options) {";

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith("/dsh-app-boot/lib/index.js")) return loaded;
    const source = Buffer.from(loaded.source as Uint8Array).toString("utf8");
    if (!source.includes(WATCH)) throw new Error("dsh-start.ts does not fit this release of DeepSeek Harness");
    return { ...loaded, source: source.replace(WATCH, `${WATCH} return async () => {};`) };
  },
});
