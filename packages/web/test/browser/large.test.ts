import type { Page, Response } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { compressedBytes, elementsIn, recordMany } from "./large.ts";
import { Stage } from "./stage.ts";

const SESSIONS = 10_000;
const MESSAGES = 100_000;
const ELEMENTS_MAX = 3000;
const BYTES_MAX = 250_000;
const RANGE_BYTES_MAX = 100_000;
/** Every session is synced, which takes minutes on a busy machine. */
const PREPARATION_MS = 1_200_000;

/** A folder for each session would take minutes to make. */
const stage = new Stage(0, "sqlite");
let long: string;

beforeAll(async () => {
  long = await recordMany(stage.store, { sessions: SESSIONS, messages: MESSAGES });
  await stage.serve();
}, PREPARATION_MS);
afterEach(() => stage.closePages());
afterAll(() => stage[Symbol.asyncDispose]());

test("the whole page is below 250 KB, compressed", () => {
  expect(compressedBytes()).toBeLessThan(BYTES_MAX);
});

test(`${SESSIONS} sessions: a few rows are in the page, and the last one is a key away`, async () => {
  const page = await stage.page("/");
  await page.getByText(`${(SESSIONS + 1).toLocaleString("en")} sessions`, { exact: true }).waitFor();
  expect(await elementsIn(page)).toBeLessThan(ELEMENTS_MAX);
  await page.locator(".list-rows").evaluate((list) => {
    list.scrollTop = list.scrollHeight;
  });
  await page.locator(".row-title", { hasText: /^Session 0$/ }).waitFor();
  expect(await elementsIn(page)).toBeLessThan(ELEMENTS_MAX);
  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByLabel("Folder").selectOption("/work/7");
  await page.getByText(`${SESSIONS / 20} of`).waitFor();
  await page.getByRole("searchbox").fill("Session 4007");
  await page.locator(".row-title", { hasText: /^Session 4007$/ }).waitFor();
});

test(`${MESSAGES} messages: few elements, and any message is one request away`, async () => {
  const page = await stage.page(`/${long}`);
  await page.locator("article", { hasText: `answer number ${MESSAGES - 1},` }).waitFor();
  await page.locator(".timeline canvas").waitFor();
  expect(await elementsIn(page)).toBeLessThan(ELEMENTS_MAX);
  await page.keyboard.press("g");
  await page.locator("article", { hasText: "prompt at 0" }).waitFor();
  const { sizes: ranges, stop } = watchSizes(page, "/transcript");
  for (const share of [0.5, 0.12, 0.99, 0.77]) {
    const message = Math.floor((share * MESSAGES) / 100) * 100;
    const one = `/sessions/${long}/transcript?from=${message}&limit=1`;
    const { items } = await stage.ask<{ items: { id: string }[] }>("GET", one);
    ranges.length = 0;
    await page.goto(`${stage.url}/#/${long}/conversation/${items[0]!.id}`);
    await page.locator("article:focus", { hasText: `prompt at ${message}` }).waitFor();
    expect(await Promise.all(ranges)).toEqual([expect.any(Number)]);
    expect(await ranges[0]).toBeLessThan(RANGE_BYTES_MAX);
    expect(await elementsIn(page)).toBeLessThan(ELEMENTS_MAX);
  }
  stop();
  expect(page.problems).toEqual([]);
});

/** The sizes of the answers that the page gets for requests whose addresses contain `part`. */
function watchSizes(page: Page, part: string): { readonly sizes: Promise<number>[]; stop(): void } {
  const sizes: Promise<number>[] = [];
  const onResponse = (response: Response): void => {
    if (response.url().includes(part)) sizes.push(response.body().then(({ length }) => length));
  };
  page.on("response", onResponse);
  return { sizes, stop: () => void page.off("response", onResponse) };
}

test(`the timeline of ${MESSAGES} messages is small, and shows each bar after zooming in`, async () => {
  // The list first: a browser drops the answers that a page got before it was loaded again.
  const page = await stage.page("/");
  const { sizes, stop } = watchSizes(page, "/timeline");
  await page.goto(`${stage.url}/#/${long}`);
  const canvas = page.locator(".timeline canvas");
  await canvas.waitFor();
  const tip = page.locator(".timeline-tip");
  /** What the row of the model calls shows as the pointer moves along it, up to these words: bars may be short. */
  const shown = async (wanted: RegExp) => {
    const { x, y, width } = (await canvas.boundingBox())!;
    const seen: string[] = [];
    for (let at = 5; at < width; at += 5) {
      await page.mouse.move(x + at, y + 65);
      seen.push(...(await tip.allInnerTexts()));
      if (wanted.test(seen.at(-1) ?? "")) break;
    }
    return seen.at(-1) ?? "";
  };
  // The first call may take long enough to have a bar of its own.
  await expect.poll(() => shown(/model calls/), { timeout: 240_000 }).toMatch(/model calls/);
  for (let step = 0; step < 30; step++) await page.keyboard.press("+");
  // A hundredth of a second fits on the screen now. The machine may have paused for longer while it recorded.
  const further = async () => {
    await page.keyboard.press("l");
    return shown(/^Model/);
  };
  // Each look takes hundreds of movements of the pointer.
  await expect.poll(further, { timeout: 240_000 }).toMatch(/^Model/);
  await expect.poll(() => sizes.length).toBeGreaterThan(1);
  stop();
  for (const size of await Promise.all(sizes)) expect(size).toBeLessThan(200_000);
});
