import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import chromium from "@sparticuz/chromium";
import { type Browser, chromium as playwright } from "playwright-core";

/**
 * Chromium from the npm package, without anything installed on the machine. It reuses the copy in the temporary folder
 * whatever its version is, so it gets a folder of its own.
 */
export async function launchChromium(): Promise<Browser> {
  const folder = join(tmpdir(), "holdfast-chromium-153");
  mkdirSync(folder, { recursive: true });
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = folder;
  const executablePath = await chromium.executablePath();
  if (before === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = before;
  // Not the package's own flags: they switch off what protects a page, which is what the tests are about.
  const args = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage", "--disable-gpu"];
  return playwright.launch({ executablePath, args, headless: true });
}
