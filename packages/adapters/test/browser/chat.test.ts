import { cpSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { launchChromium } from "../../../web/test/browser/chromium.ts";
import { ChatServer } from "../chat-server.ts";

/** The page and the server of examples/chat in a real browser, with an agent that waits where the test says so. */

const EXAMPLE = resolve(import.meta.dirname, "../../../../examples/chat");
const built = place();
let browser: Browser;

beforeAll(async () => {
  const outDir = join(built.path, "dist");
  await build({ configFile: join(EXAMPLE, "vite.config.ts"), logLevel: "error", build: { outDir } });
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  built[Symbol.dispose]();
});

class Stage extends ChatServer {
  readonly problems: string[] = [];

  constructor() {
    super({ "server.ts": readFileSync(join(EXAMPLE, "server.ts"), "utf8") });
    cpSync(join(built.path, "dist"), join(this.folder, "dist"), { recursive: true });
  }

  /** A tab, as if on a device of its own. */
  async tab(): Promise<Page> {
    const context = await browser.newContext();
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    page.on("pageerror", (error) => this.problems.push(String(error)));
    await page.goto(`${this.url}/#${this.id}`);
    await page.getByLabel("Message").waitFor();
    return page;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const context of browser.contexts()) await context.close();
    await super[Symbol.asyncDispose]();
  }
}

async function say(page: Page, words: string): Promise<void> {
  await page.getByLabel("Message").fill(words);
  await page.keyboard.press("Enter");
}

const answer = (page: Page) => page.locator("article.assistant").last();
const shows = (page: Page, words: string | RegExp) => answer(page).getByText(words).first().waitFor();
const ids = (page: Page): Promise<string[]> =>
  page.locator("article").evaluateAll((all) => all.map((one) => (one as { id?: string }).id ?? ""));

test("reload in mid-stream, and a second tab: both take up the answer, and end with the same, once", async () => {
  await using stage = new Stage();
  await stage.start();
  const page = await stage.tab();
  await say(page, "Please look.");
  await stage.says("speaking");
  await shows(page, /^That/);
  const before = await ids(page);
  await page.reload();
  await shows(page, /^That/);
  const other = await stage.tab();
  await shows(other, /^That/);
  stage.release();
  for (const one of [page, other]) {
    await shows(one, "That was prompt 1: all is well.");
    await one.getByRole("button", { name: "Send" }).waitFor();
    await expect.poll(() => ids(one)).toEqual(before);
    await expect.poll(() => one.getByText("all is well").count()).toBe(1);
  }
  expect(stage.lines("effects")).toHaveLength(1);
  expect(stage.lines("asked")).toHaveLength(2);
  expect(stage.problems).toEqual([]);
});

test("kill -9 in mid-tool: the page reconnects, names the tool with the unknown outcome, and goes on", async () => {
  await using stage = new Stage();
  await stage.start();
  const page = await stage.tab();
  await say(page, "Please carry it.");
  await stage.says("carrying");
  await shows(page, "I carry it.");
  const before = await ids(page);
  await stage.kill();
  stage.release();
  await stage.start();
  const banner = page.getByRole("alert");
  await banner.getByText("carry: was running, and may have taken effect").waitFor();
  await shows(page, "I carry it.");
  await expect.poll(() => ids(page)).toEqual(before);
  await banner.getByRole("button", { name: "Go on" }).click();
  await shows(page, "Please check: all is well.");
  await page.getByRole("button", { name: "Send" }).waitFor();
  await expect.poll(() => ids(page)).toEqual(before);
  expect(stage.lines("effects"), "it did not run again").toHaveLength(1);
  expect(stage.problems).toEqual([]);
});

test("an approval, and a client-side tool, across a restart of the server", async () => {
  await using stage = new Stage();
  stage.release();
  await stage.start();
  const page = await stage.tab();
  await say(page, "Please send.");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  const other = await stage.tab();
  await other.getByRole("button", { name: "Deny" }).waitFor();
  await stage.kill();
  expect(stage.lines("effects")).toEqual([]);
  await stage.start();
  await page.getByRole("button", { name: "Approve" }).click();
  await shows(page, "That was prompt 1: all is well.");
  expect(stage.lines("effects")).toHaveLength(1);
  // The other tab did not know.
  await other.getByRole("button", { name: "Deny" }).click();
  await other.getByRole("alert").getByText("already answered differently").waitFor();
  await other.getByRole("button", { name: "Reconnect" }).click();
  await shows(other, "That was prompt 1: all is well.");
  expect(stage.lines("effects")).toHaveLength(1);

  // It takes the next message once the answer has ended, which is a moment after its last words.
  await page.getByRole("button", { name: "Send" }).waitFor();
  await say(page, "What time is it?");
  await page.getByRole("button", { name: "Tell the time" }).waitFor();
  await stage.kill();
  await stage.start();
  await page.reload();
  await page.getByRole("button", { name: "Tell the time" }).click();
  await shows(page, "That was prompt 2: all is well.");
  expect(stage.lines("asked").at(-1)).toMatch(/GMT|UTC/);
  expect(stage.problems).toEqual([]);
});
