import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Example, Stage } from "./stage.ts";

/** The page and the server of examples/chat in a real browser, with an agent that waits where the test says so. */

let example: Example;
beforeAll(async () => {
  example = await Example.build();
});
afterAll(() => example?.[Symbol.asyncDispose]());

async function say(page: Page, words: string): Promise<void> {
  await page.getByLabel("Message").fill(words);
  await page.keyboard.press("Enter");
}

const answer = (page: Page) => page.locator("article.assistant").last();
const shows = (page: Page, words: string | RegExp) => answer(page).getByText(words).first().waitFor();
const ids = (page: Page): Promise<string[]> =>
  page.locator("article").evaluateAll((all) => all.map((one) => (one as { id?: string }).id ?? ""));

test("reload in mid-stream, and a second tab: both take up the answer, and end with the same, once", async () => {
  await using stage = new Stage(example);
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
  await using stage = new Stage(example);
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
  await using stage = new Stage(example);
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

test("kill -9 in mid-tool beside an approval: the page names the tool, and its user can still approve", async () => {
  await using stage = new Stage(example);
  await stage.start();
  const page = await stage.tab();
  await say(page, "Please do both.");
  await stage.says("carrying");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await stage.kill();
  stage.release();
  await stage.start();
  await page.getByRole("alert").getByText("carry: was running, and may have taken effect").waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await shows(page, "Please check: all is well.");
  await expect.poll(() => page.getByRole("alert").count(), { message: "nothing is broken off any more" }).toBe(0);
  expect(stage.lines("effects"), "one carried, one sent").toHaveLength(2);
  expect(stage.problems).toEqual([]);
});

test("what a user types, decides or asks for while the server is down is done when it is back", async () => {
  await using stage = new Stage(example);
  stage.release();
  await stage.start();
  const page = await stage.tab();
  await stage.kill();
  await say(page, "Please carry it.");
  await stage.start();
  await stage.says("carrying");
  await shows(page, "I carry it.");
  await stage.kill();
  await stage.start();
  const goOn = page.getByRole("button", { name: "Go on" });
  await goOn.waitFor();
  await stage.kill();
  await goOn.click();
  await stage.start();
  await shows(page, "Please check: all is well.");
  await page.getByRole("button", { name: "Send" }).waitFor();
  await say(page, "Please send.");
  const approve = page.getByRole("button", { name: "Approve" });
  await approve.waitFor();
  await stage.kill();
  await approve.click();
  await stage.start();
  await shows(page, "That was prompt 2: all is well.");
  await page.getByRole("button", { name: "Send" }).waitFor();
  await expect.poll(() => page.getByRole("alert").count()).toBe(0);
  expect(stage.lines("effects")).toHaveLength(2);
  expect(stage.problems).toEqual([]);
});

test("a state that was asked for earlier and arrives later does not replace a newer one", async () => {
  await using stage = new Stage(example);
  stage.release();
  await stage.start();
  const page = await stage.tab();
  const [released, delivered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isHeld = false;
  await page.route(`**/api/chat/${stage.id}`, async (route) => {
    if (route.request().method() !== "GET") return route.continue();
    // The server may be killed at any moment of this.
    const answer = await route
      .fetch()
      .then(async (response) => ({ response, body: await response.text() }))
      .catch(() => null);
    if (!answer) return route.abort().catch(() => {});
    // Only now: two answers may be read at the same time, and one of them must pass.
    if (isHeld || !answer.body.includes('"status":"interrupted"')) return route.fulfill(answer).catch(() => {});
    isHeld = true;
    await released.promise;
    await route.fulfill(answer);
    delivered.resolve();
  });
  await say(page, "Please carry it.");
  await stage.says("carrying");
  await shows(page, "I carry it.");
  await stage.kill();
  await stage.start();
  await page.getByRole("button", { name: "Go on" }).click();
  await shows(page, "Please check: all is well.");
  await page.getByRole("button", { name: "Send" }).waitFor();
  expect(isHeld).toBe(true);
  released.resolve();
  await delivered.promise;
  await say(page, "And now?");
  await shows(page, "That was prompt 2: all is well.");
  await expect.poll(() => page.getByRole("alert").count()).toBe(0);
  expect(stage.problems).toEqual([]);
});
