import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "holdfast";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Stage } from "./stage.ts";

/** Slow enough to be caught in the middle of a sentence, and for a busy machine to draw each word. */
const stage = new Stage(60);
beforeAll(() => stage.serve());
afterEach(() => stage.closePages());
afterAll(() => stage[Symbol.asyncDispose]());

/** Resolves when the server has taken the prompt: the composer sends the next one only after that. */
async function send(page: Page, text: string): Promise<void> {
  const field = page.locator(".composer textarea");
  await field.fill(text);
  await field.press("Enter");
  await expect.poll(() => field.inputValue()).toBe("");
}

const answers = (page: Page) => page.locator(".item-answer:not(.live)");
const status = (page: Page, word: string) => page.locator(".session-meta .chip", { hasText: word });

test("text streams in; a reload in mid-stream shows all of it, once", async () => {
  const id = await stage.newSession("Stream");
  const page = await stage.page(`/${id}`);
  // So long that it cannot end before the page was loaded again.
  await send(page, "tell me a story of 9000 words");
  const live = () => page.locator(".live .markdown").innerText();
  // Its first word alone may come again.
  await expect.poll(live).toMatch(/^[\s\S]{40}/);
  const before = (await live()).slice(0, 40);
  await page.reload();
  await expect.poll(live).toContain(before);
  await page.locator(".composer").getByRole("button", { name: "Stop" }).click();
  await page.locator(".cut-off").waitFor();
  await page.locator(".live").waitFor({ state: "detached" });
  expect((await answers(page).innerText()).split(before)).toHaveLength(2);
  expect(page.problems).toEqual([]);
});

test("a turn goes on without the page, and the next page shows all of it, once", async () => {
  const id = await stage.newSession("Alone");
  const page = await stage.page(`/${id}`);
  await send(page, "tell me a story of 50 words");
  await page.context().close();
  const other = await stage.page(`/${id}`);
  await status(other, "Idle").waitFor({ timeout: 120_000 });
  await other.locator(".live").waitFor({ state: "detached" });
  await answers(other).waitFor();
  expect((await answers(other).innerText()).split("Chapter 1: ")).toHaveLength(2);
  expect(await other.locator(".item-prompt").count()).toBe(1);
  expect(other.problems).toEqual([]);
});

test("two pages see the same words", async () => {
  const id = await stage.newSession("Two");
  const [one, other] = [await stage.page(`/${id}`), await stage.page(`/${id}`)];
  // So long that it cannot end before both show it.
  await send(one, "tell me a story of 9000 words");
  await Promise.all([one, other].map((page) => page.locator(".live .markdown").waitFor()));
  await one.locator(".composer").getByRole("button", { name: "Stop" }).click();
  await Promise.all(
    [one, other].map(async (page) => {
      await page.locator(".cut-off").waitFor();
      await status(page, "Stopped").waitFor();
      await page.locator(".live").waitFor({ state: "detached" });
    }),
  );
  await expect.poll(() => answers(other).innerText()).toBe(await answers(one).innerText());
});

test("a prompt sent while a turn runs is queued, can be taken back, and stop stops", async () => {
  const id = await stage.newSession("Queue");
  const page = await stage.page(`/${id}`);
  await send(page, "tell me a story of 9000 words");
  await page.locator(".live").waitFor();
  await send(page, "and then another");
  await page.locator(".queue li", { hasText: "and then another" }).waitFor();
  await page.getByRole("button", { name: "Remove from the queue" }).click();
  await page.locator(".queue").waitFor({ state: "detached" });
  await page.locator(".composer").getByRole("button", { name: "Stop" }).click();
  await page.locator(".cut-off").waitFor();
  await status(page, "Stopped").waitFor();
  await page.locator(".mark-stopped").waitFor();
});

test("what is written while a prompt is on its way to the server stays", async () => {
  const id = await stage.newSession("Meanwhile");
  const page = await stage.page(`/${id}`);
  const sent = Promise.withResolvers<void>();
  await page.route(/\/turns$/, async (route) => {
    await sent.promise;
    await route.continue();
  });
  const field = page.locator(".composer textarea");
  await field.fill("tell me a story of 20 words");
  await field.press("Enter");
  const button = (state: string) => page.locator(`.composer .button-main${state}`);
  await button(":disabled").waitFor();
  await field.fill("the next one");
  sent.resolve();
  await answers(page).waitFor();
  await button(":enabled").waitFor();
  expect(await field.inputValue()).toBe("the next one");
});

test("a call waits for approval: all of it is shown; a denial with a reason reaches the model; an approval runs it", async () => {
  const id = await stage.newSession("Approve");
  const page = await stage.page(`/${id}`);
  await send(page, "write notes.md: remember the milk");
  const card = page.locator(".ask");
  await expect.poll(() => card.innerText()).toContain("remember the milk");
  expect(existsSync(join(stage.work, "notes.md"))).toBe(false);
  await card.getByRole("button", { name: "Deny, and tell it why" }).click();
  await page.locator(".ask-why input").fill("not in this folder");
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await card.waitFor({ state: "detached" });
  await page.locator(".state-denied").waitFor();
  expect(existsSync(join(stage.work, "notes.md"))).toBe(false);
  await status(page, "Idle").waitFor();
  await send(page, "write notes.md: remember the milk");
  await card.waitFor();
  // The question is there after a reload too.
  await page.reload();
  await card.waitFor();
  await card.locator(".button-main").click();
  await page.locator(".call-done").first().waitFor();
  expect(readFileSync(join(stage.work, "notes.md"), "utf8")).toContain("remember the milk");
  expect(page.problems).toEqual([]);
});

/** What offers to undo is there for some seconds, and a busy machine may need them to look at the rest of the page. */
async function keepToasts(page: Page): Promise<void> {
  await page.evaluate(() => {
    const later = window.setTimeout;
    const kept = (run: () => void, ms = 0): number => later(run, ms >= 8_000 ? 1_000_000 : ms);
    Object.assign(window, { setTimeout: kept });
  });
}

/** Until some of what the model is saying has reached the journal. */
async function recordedText(id: string): Promise<void> {
  await using store = await openStore(stage.store, { app: "holdfast" });
  const hasText = async (): Promise<boolean> => {
    for await (const { kind, parts } of store.history(id))
      if (kind === "draft" && (parts as { text?: string }[]).some(({ text = "" }) => text.trim() !== "")) return true;
    return false;
  };
  await expect.poll(hasText).toBe(true);
}

async function interrupted(title: string): Promise<{ id: string; page: Awaited<ReturnType<Stage["page"]>> }> {
  const id = await stage.newSession(title);
  const page = await stage.page(`/${id}`);
  await send(page, "tell me a story of 9000 words");
  await page.locator(".live .markdown").waitFor();
  await recordedText(id);
  await stage.kill();
  await page.locator(".offline").waitFor();
  await stage.serve();
  // Without a reload.
  await page.locator(".interrupted").waitFor();
  return { id, page };
}

test("the server is killed in mid-sentence: the page says what was being said, and Finish finishes", async () => {
  const { page } = await interrupted("Finish");
  const card = () => page.locator(".interrupted").innerText();
  await expect.poll(card).toContain("Turn 1: interrupted: its process died");
  await expect.poll(card).toContain("The model was saying:");
  await page.getByRole("button", { name: "Finish the turn" }).click();
  await status(page, "Running").waitFor();
  await page.locator(".interrupted").waitFor({ state: "detached" });
  await page.locator(".composer").getByRole("button", { name: "Stop" }).click();
  const marks = () =>
    page.locator(".mark").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")).join());
  await expect.poll(marks).toMatch(/The process died.*resumed/);
});

test("a prompt that is being typed survives a reload and a crash of the tab, until it is sent", async () => {
  const id = await stage.newSession("Typing");
  const page = await stage.page(`/${id}`);
  const field = page.locator(".composer textarea");
  await field.fill("tell me a story of 20 words");
  await page.reload();
  await expect.poll(() => field.inputValue()).toBe("tell me a story of 20 words");
  await page.close();
  const other = await page.context().newPage();
  await other.goto(`${stage.url}/#/${id}`);
  const again = other.locator(".composer textarea");
  await expect.poll(() => again.inputValue()).toBe("tell me a story of 20 words");
  await again.press("Enter");
  await answers(other).waitFor();
  await other.reload();
  await answers(other).waitFor();
  expect(await again.inputValue()).toBe("");
});

test("an interrupted turn can be left, or forked from", async () => {
  const { id, page } = await interrupted("Leave");
  await page.getByRole("button", { name: "Fork from here" }).click();
  await page.waitForFunction((from) => !location.hash.includes(from), id);
  await page.locator(".session-meta a", { hasText: "fork" }).waitFor();
  await page.goto(`${stage.url}/#/${id}`);
  await page.getByRole("button", { name: "Leave it" }).click();
  await page.locator(".interrupted").waitFor({ state: "detached" });
  await status(page, "Idle").or(status(page, "Interrupted")).waitFor();
});

test("rename, rewind and undo, delete and undo", async () => {
  const id = await stage.newSession("Before");
  const page = await stage.page(`/${id}`);
  await keepToasts(page);
  await send(page, "tell me a story of 20 words");
  await answers(page).waitFor();
  await status(page, "Idle").waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "Title" }).fill("After");
  await page.keyboard.press("Enter");
  await page.locator(".session-pane h1", { hasText: "After" }).waitFor();
  await page.locator(".item-prompt").hover();
  await page
    .locator(".item-prompt")
    .getByRole("button", { name: /Actions/ })
    .click();
  await page.getByRole("menuitem", { name: "Rewind to before this" }).click();
  await page.locator(".item-prompt").waitFor({ state: "detached" });
  await expect.poll(() => page.locator(".composer textarea").inputValue()).toBe("tell me a story of 20 words");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator(".item-prompt").waitFor();
  await stage.ask("POST", `/sessions/${id}/close`);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.locator(".welcome h1").waitFor();
  await page.getByRole("button", { name: "Undo" }).last().click();
  await page.locator(".session-pane h1", { hasText: "After" }).waitFor();
});

test("a session is exported as a file", async () => {
  const id = await stage.newSession("Export");
  const page = await stage.page(`/${id}`);
  await send(page, "tell me a story of 20 words");
  await answers(page).waitFor();
  await page.getByRole("button", { name: "Export" }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Markdown", exact: true }).click(),
  ]);
  expect(readFileSync(await download.path(), "utf8")).toContain("tell me a story of 20 words");
});

test("parallel calls are side by side, and a sub-agent's work opens in its place", async () => {
  const id = await stage.newSession("Delegate");
  const page = await stage.page(`/${id}`, { viewport: { width: 1680, height: 1000 } });
  await send(page, "delegate:\n- list .\n- search for milk in .");
  await page.locator(".calls-parallel .call").nth(1).waitFor();
  await status(page, "Idle").waitFor();
  const [one, other] = await page
    .locator(".calls-parallel .call")
    .evaluateAll((all) => all.map((call) => call.getBoundingClientRect().top));
  expect(one).toBe(other);
  await page.getByRole("button", { name: "What the sub-agent did" }).first().click();
  await page.locator(".sub-items li").first().waitFor();
  await page.getByRole("tab", { name: "Sub-agents" }).click();
  await page.locator(".tree-root ul li").nth(1).waitFor();
});
