import AxeBuilder from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Stage } from "./stage.ts";

const stage = new Stage();
let hero: string;
let fork: string;
let empty: string;
let replaced: number;

beforeAll(async () => {
  stage.tell();
  await stage.serve();
  hero = await stage.idOf("Make the CSV importer");
  fork = await stage.idOf("Importer: try it with COPY");
  empty = await stage.newSession("Nothing yet");
  const { epochs } = await stage.ask<{ epochs: { until: number }[] }>("GET", `/sessions/${hero}/epochs`);
  replaced = epochs[0]!.until;
});
afterEach(() => stage.closePages());
afterAll(() => stage[Symbol.asyncDispose]());

const SIZES = [
  { width: 390, height: 844 },
  { width: 1024, height: 768 },
  { width: 1680, height: 1000 },
];
const screens = (): readonly (readonly [name: string, path: string, shown: string])[] => [
  ["the list", "/", ".row"],
  ["a session", `/${hero}`, ".interrupted"],
  ["a conversation that was replaced", `/${hero}/until-${replaced}`, ".epochs.is-replaced"],
  // Not while it is loading.
  ["an empty session", `/${empty}`, ".session-pane:has(h1) .empty"],
  ["changed files", `/${hero}/files`, ".changed-file"],
  ["usage", `/${hero}/usage`, ".figures"],
  ["sub-agents", `/${hero}/tree`, ".tree-root"],
  ["a fork beside its source", `/${fork}/compare`, ".compare-side"],
];

async function violations(page: Page): Promise<string[]> {
  const { violations: found } = await new AxeBuilder({ page }).analyze();
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`),
  );
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const viewport of SIZES) {
    test(`every screen at ${viewport.width} pixels, ${colorScheme}: no violation of accessibility, nothing wider than the screen`, async () => {
      const page = await stage.page("/", { colorScheme, viewport });
      for (const [name, path, shown] of screens()) {
        await page.goto(`${stage.url}/#${path}`);
        await page.locator(shown).first().waitFor();
        expect([name, await violations(page)]).toEqual([name, []]);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        expect([name, overflow]).toEqual([name, 0]);
      }
      expect(page.problems).toEqual([]);
    });
  }
}

test("dialogs and menus: no violation of accessibility", async () => {
  const page = await stage.page(`/${hero}`);
  await page.locator(".interrupted").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "More actions" }).click();
  expect(await violations(page)).toEqual([]);
  await page.getByRole("menuitem", { name: "Check for damage" }).click();
  await page.getByText("All records are whole.").waitFor();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "New", exact: true }).click();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Filters" }).click();
  expect(await violations(page)).toEqual([]);
});

test("an interruption in words: what never ran, what may have run", async () => {
  const page = await stage.page(`/${hero}`);
  const card = () => page.locator(".interrupted").innerText();
  await expect.poll(card).toContain("Turn 5: interrupted: its process died");
  await expect.poll(card).toMatch(/shell\s+npm publish.*\s+started, outcome unknown/);
  await expect.poll(card).toMatch(/slack__post\s+channel: #releases.*\s+never started, safe to run/);
});

test("the timeline shows every death, stop, resumption and replacement, and leads to the message", async () => {
  const page = await stage.page(`/${hero}`, { viewport: { width: 1680, height: 1000 } });
  await page.locator(".mark").first().waitFor();
  const marks = () =>
    page.locator(".mark").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? ""));
  await expect
    .poll(async () => (await marks()).map((words) => words.split(" · ")[0]))
    .toEqual([
      "The process died",
      "Turn 2 was resumed",
      "The conversation was summarized",
      "Stopped by user",
      "The process died",
    ]);
  expect((await marks()).at(-1)).toContain("2 tool calls had not started: slack__post, slack__post");
  // The last turn is at the right end, in the first row. What else is loaded may still move the timeline.
  const lastTurn = async (): Promise<{ x: number; y: number }> => {
    const { x, y, width } = (await page.locator(".timeline canvas").boundingBox())!;
    return { x: x + width - 40, y: y + 30 };
  };
  const tip = page.locator(".timeline-tip");
  const pointed = async (): Promise<string> => {
    const { x, y } = await lastTurn();
    await page.mouse.move(x, y);
    return (await tip.allInnerTexts()).join("");
  };
  await expect.poll(pointed).toContain("Turn 5: Release 2.4.0");
  const { x, y } = await lastTurn();
  await page.mouse.click(x, y);
  await page.locator("article:focus", { hasText: "Release 2.4.0" }).waitFor();
});

test("the keyboard alone: choose a session, move between prompts, zoom, come back", async () => {
  const page = await stage.page("/");
  await page.locator(".row").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(".session-pane h1").waitFor();
  const first = await page.locator(".session-pane h1").innerText();
  await page.keyboard.press("j");
  await page.waitForFunction((title) => document.querySelector(".session-pane h1")?.textContent !== title, first);
  await page.goto(`${stage.url}/#/${hero}`);
  await page.locator(".interrupted").waitFor();
  await page.keyboard.press("g");
  await page.locator("article[aria-posinset='1']:focus").waitFor();
  await page.keyboard.press("n");
  await page.locator("article:focus[aria-label^=Prompt]").waitFor();
  await page.keyboard.press("+");
  await page.keyboard.press("l");
  await page.keyboard.press("0");
  await page.keyboard.press("c");
  await page.locator(".composer textarea:focus").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.locator(".welcome h1").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("changelog");
  await page.locator(".row-hit mark").first().waitFor();
  await expect.poll(() => page.locator(".row-hit mark").first().innerText()).toMatch(/changelog/i);
});

test("a conversation that was replaced can be read, and says that the model no longer sees it", async () => {
  const page = await stage.page(`/${hero}`);
  await page.locator(".epochs").getByRole("link", { name: "Read what was replaced" }).click();
  await page.locator(".epochs.is-replaced").waitFor();
  await expect.poll(() => page.locator(".epochs").innerText()).toContain("Replaced: the model no longer sees this.");
  await page.locator("article", { hasText: "The import survived" }).waitFor();
  await expect.poll(() => page.locator(".composer").count()).toBe(0);
  await page.keyboard.press("g");
  await page.locator("article:focus", { hasText: "The nightly import loses rows" }).waitFor();
  await page.getByRole("link", { name: "Back to the current conversation" }).click();
  await page.locator(".interrupted").waitFor();
  // A click on what happened before leads there.
  await page.locator(".mark").first().waitFor();
  const box = (await page.locator(".timeline canvas").boundingBox())!;
  await page.mouse.click(box.x + 40, box.y + 30);
  await page.locator("article:focus", { hasText: "The nightly import loses rows" }).waitFor();
  await page.locator(".epochs.is-replaced").waitFor();
  // And on what happened after leads back.
  await page.mouse.click(box.x + box.width - 40, box.y + 30);
  await page.locator("article:focus", { hasText: "Release 2.4.0" }).waitFor();
  await page.locator(".epochs.is-replaced").waitFor({ state: "detached" });
  expect(page.problems).toEqual([]);
});
