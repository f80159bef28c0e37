import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { Stage } from "./stage.ts";

/** `npm run pictures`: the pictures of docs/guides/web-page.md, from the story that the tests use. */

const images = join(import.meta.dirname, "../../../../docs/images");
mkdirSync(images, { recursive: true });
await using stage = new Stage();
stage.tell();
await stage.serve();
const hero = await stage.idOf("Make the CSV importer");
const fork = await stage.idOf("Importer: try it with COPY");

await take("page-session", `/${hero}`, ".interrupted", { width: 1280, height: 860 }, "light");
await take("page-timeline-dark", `/${hero}`, ".mark", { width: 1400, height: 900 }, "dark", ".timeline");
await take("page-phone", `/${hero}`, ".interrupted", { width: 390, height: 780 }, "dark");
await take("page-files", `/${hero}/files`, ".diff", { width: 1100, height: 760 }, "light", ".panel");
await take("page-compare", `/${fork}/compare`, ".compare-side", { width: 1280, height: 860 }, "light");

async function take(
  name: string,
  path: string,
  shown: string,
  viewport: { readonly width: number; readonly height: number },
  colorScheme: "light" | "dark",
  part?: string,
): Promise<void> {
  const page = await stage.page(path, { viewport, colorScheme });
  await page.locator(shown).first().waitFor();
  await page
    .locator(".mark")
    .first()
    .waitFor({ state: "attached", timeout: 2000 })
    .catch(() => null);
  // The last measurement of the rows.
  await page.waitForTimeout(500);
  const png = await (part === undefined ? page.screenshot() : page.locator(part).screenshot());
  writeFileSync(join(images, `${name}.webp`), await webpOf(page, png));
  await page.context().close();
  console.log(`docs/images/${name}.webp`);
}

/** Playwright cannot write WebP, which is a third of the size; the browser can. */
async function webpOf(page: Page, png: Buffer): Promise<Buffer> {
  const url = await page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d")!.drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.9);
  }, png.toString("base64"));
  return Buffer.from(url.slice(url.indexOf(",") + 1), "base64");
}
