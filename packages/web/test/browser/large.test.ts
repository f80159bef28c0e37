import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { openStore, type Store } from "holdfast";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Stage } from "./stage.ts";

const SESSIONS = 10_000;
const MESSAGES = 100_000;
const ELEMENTS_MAX = 3000;
const BYTES_MAX = 250_000;
const TOGETHER = 250;
/** Every session is synced, which takes minutes on a busy machine. */
const PREPARATION_MS = 1_200_000;

/** A folder for each session would take minutes to make. */
const stage = new Stage(0, "sqlite");
let long: string;

beforeAll(async () => {
  const store = await openStore(stage.store, { app: "holdfast", durability: "process", recordsToolStarts: true });
  for (let from = 0; from < SESSIONS; from += TOGETHER) {
    const numbers = Array.from({ length: TOGETHER }, (_, at) => from + at);
    await Promise.all(numbers.map((index) => record(store, index)));
  }
  const session = await store.create({ dialect: "ai-sdk", title: "The long one", cwd: "/work/long" });
  for (let message = 0; message < MESSAGES; message += 100) {
    const turn = await session.startTurn({ role: "user", content: `prompt at ${message}` });
    const answers = Array.from({ length: 99 }, (_, at) =>
      turn.append({ role: "assistant", content: `answer number ${message + at + 1}, with **some** words` }),
    );
    await Promise.all(answers);
    await turn.end();
  }
  await session.close();
  long = session.id;
  await store.close();
  await stage.serve();
}, PREPARATION_MS);
afterAll(() => stage[Symbol.asyncDispose]());

async function record(store: Store, index: number): Promise<void> {
  const session = await store.create({ dialect: "ai-sdk", title: `Session ${index}`, cwd: `/work/${index % 20}` });
  await (await session.startTurn({ role: "user", content: `prompt ${index}` })).end();
  await session.close();
}

const elements = (page: Page): Promise<number> => page.evaluate(() => document.querySelectorAll("*").length);

test("the whole page is below 250 KB, compressed", () => {
  const folder = join(import.meta.dirname, "../../dist");
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const bytes = files.reduce(
    (sum, { parentPath, name }) => sum + gzipSync(readFileSync(join(parentPath, name))).length,
    0,
  );
  expect(bytes).toBeLessThan(BYTES_MAX);
});

test(`${SESSIONS} sessions: a few rows are in the page, and the last one is a key away`, async () => {
  const page = await stage.page("/");
  await page.getByText(`${(SESSIONS + 1).toLocaleString("en")} sessions`, { exact: true }).waitFor();
  expect(await elements(page)).toBeLessThan(ELEMENTS_MAX);
  await page.locator(".list-rows").evaluate((list) => {
    list.scrollTop = list.scrollHeight;
  });
  await page.locator(".row-title", { hasText: /^Session 0$/ }).waitFor();
  expect(await elements(page)).toBeLessThan(ELEMENTS_MAX);
  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByLabel("Folder").selectOption("/work/7");
  await page.getByText(`${SESSIONS / 20} of`).waitFor();
  await page.getByRole("searchbox").fill("Session 4007");
  await page.locator(".row-title", { hasText: /^Session 4007$/ }).waitFor();
});

test(`${MESSAGES} messages: few elements, and any message is reached by loading a few pages`, async () => {
  const page = await stage.page(`/${long}`);
  await page.locator("article", { hasText: `answer number ${MESSAGES - 1},` }).waitFor();
  expect(await elements(page)).toBeLessThan(ELEMENTS_MAX);
  let loads = 0;
  page.on("request", (request) => {
    if (request.url().includes("/transcript")) loads++;
  });
  await page.keyboard.press("g");
  await page.locator("article", { hasText: "prompt at 0" }).waitFor();
  for (const message of [50_000, 12_300, 99_900, 77_700]) {
    loads = 0;
    const id = await page.evaluate(
      async ([session, at]) =>
        (
          (await (await fetch(`./sessions/${session}/transcript?from=${at}&limit=1`)).json()) as {
            items: { id: string }[];
          }
        ).items[0]!.id,
      [long, message] as const,
    );
    const before = await page.evaluate(() => performance.now());
    await page.goto(`${stage.url}/#/${long}/conversation/${id}`);
    await page.locator("article", { hasText: `prompt at ${message}` }).waitFor();
    const took = (await page.evaluate(() => performance.now())) - before;
    console.log(`jump to ${message}: ${Math.round(took)} ms, ${loads - 1} ranges loaded`);
    expect(loads).toBeLessThan(20);
    expect(await elements(page)).toBeLessThan(ELEMENTS_MAX);
  }
  expect(page.problems).toEqual([]);
});
