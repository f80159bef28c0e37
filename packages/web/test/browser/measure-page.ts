import type { Page } from "playwright-core";
import { setup } from "./build.ts";
import { compressedBytes, elementsIn, recordMany } from "./large.ts";
import { Stage } from "./stage.ts";

/**
 * `node measure-page.ts '{"sessions":…,"messages":…,"rounds":…}'`: the web page in a real browser, for the row `page`
 * of `npm run bench`. Says what it found as JSON on the last line of its output.
 */

export interface PageSizes {
  readonly sessions: number;
  readonly messages: number;
  readonly rounds: number;
}

export interface ViewFound {
  readonly firstMs: number;
  /** Frames per second while scrolling. */
  readonly dropped: number;
  readonly elements: number;
}

export interface PageFound {
  readonly bytes: number;
  readonly list: readonly ViewFound[];
  readonly session: readonly ViewFound[];
  readonly jumpsMs: readonly number[];
}

const SCROLL_MS = 2000;
const FRAME_MS = 1000 / 60;
const PLACES = [0.5, 0.1, 0.9];

const { sessions, messages, rounds } = JSON.parse(process.argv[2]!) as PageSizes;
await setup();
await using stage = new Stage(0, "sqlite");
const long = await recordMany(stage.store, { sessions, messages });
await stage.serve();
const [list, session, jumpsMs]: [ViewFound[], ViewFound[], number[]] = [[], [], []];
for (let round = 0; round < rounds; round++) {
  list.push(await look("/", ".row-title", ".list-rows", async () => {}));
  session.push(
    await look(`/${long}`, "article .item", ".transcript", async (page) => {
      for (const share of PLACES) jumpsMs.push(await jump(page, Math.floor((share * messages) / 100) * 100));
    }),
  );
}
const found: PageFound = { bytes: compressedBytes(), list, session, jumpsMs };
process.stdout.write(`${JSON.stringify(found)}\n`);

async function look(
  path: string,
  shown: string,
  scrolled: string,
  more: (page: Page) => Promise<void>,
): Promise<ViewFound> {
  const page = await stage.page(path);
  const firstMs = await untilShown(page, shown);
  const dropped = await scrollAndCountDropped(page, scrolled);
  await more(page);
  const elements = await elementsIn(page);
  await page.context().close();
  return { firstMs, dropped, elements };
}

/** From a reload, which has the page's files in the cache, to the first content. */
async function untilShown(page: Page, selector: string): Promise<number> {
  await page.locator(selector).first().waitFor();
  await page.reload({ waitUntil: "commit" });
  return page.evaluate(
    (shown) =>
      new Promise<number>((resolve) => {
        const look = (): void => {
          if (document.querySelector(shown)) resolve(performance.now());
          else requestAnimationFrame(look);
        };
        look();
      }),
    selector,
  );
}

/** Scrolls by half a screen in each frame. A frame that takes longer than it should has dropped others. */
async function scrollAndCountDropped(page: Page, selector: string): Promise<number> {
  await page.waitForTimeout(300);
  return page.evaluate(
    ([scrolled, forMs, frameMs]) =>
      new Promise<number>((resolve) => {
        const element = document.querySelector(scrolled)!;
        const isAtEnd = element.scrollTop > 0;
        const startMs = performance.now();
        let [lastMs, dropped] = [startMs, 0];
        const step = (nowMs: number): void => {
          dropped += Math.max(0, Math.round((nowMs - lastMs) / frameMs) - 1);
          lastMs = nowMs;
          element.scrollTop += (isAtEnd ? -0.5 : 0.5) * element.clientHeight;
          if (nowMs - startMs < forMs) requestAnimationFrame(step);
          else resolve((dropped * 1000) / (nowMs - startMs));
        };
        requestAnimationFrame(step);
      }),
    [selector, SCROLL_MS, FRAME_MS] as const,
  );
}

/** From the change of the address to the frame in which the message is there. */
async function jump(page: Page, at: number): Promise<number> {
  const { items } = await stage.ask<{ items: { id: string }[] }>(
    "GET",
    `/sessions/${long}/transcript?from=${at}&limit=1`,
  );
  return page.evaluate(
    ([session, item, text]) =>
      new Promise<number>((resolve) => {
        const startMs = performance.now();
        window.location.hash = `#/${session}/conversation/${item}`;
        const look = (): void => {
          const isThere = [...document.querySelectorAll("article")].some((one) => one.textContent?.includes(text));
          if (isThere) resolve(performance.now() - startMs);
          else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
      }),
    [long, items[0]!.id, `prompt at ${at}`] as const,
  );
}
