import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";
import { launchChromium } from "./chromium.ts";

const web = join(import.meta.dirname, "../..");

/** Before the tests in a browser: the page as it is now, and a browser that is unpacked. */
export async function setup(): Promise<void> {
  const built = statSync(join(web, "dist/index.html"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = readdirSync(join(web, "src"), { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const newest = Math.max(...sources.map(({ parentPath, name }) => statSync(join(parentPath, name)).mtimeMs));
  if (newest > built) await build({ configFile: join(web, "vite.config.ts"), logLevel: "warn" });
  await (await launchChromium()).close();
}
