import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isToolUIPart, type UIMessage } from "ai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { chance } from "../kill/killed-program.ts";
import { Example, Stage } from "./stage.ts";

/**
 * The page of examples/chat in a real browser, while its server is killed again and again in turns that ask for
 * approvals. Its user clicks whatever it offers. HOLDFAST_EFFORT=50 makes fifty chats: 400 kills, about ten minutes.
 */

const seed = seedOf(import.meta.url, "browser");
const CHATS = Number(process.env["HOLDFAST_EFFORT"] ?? 1);
const KILLS = 8;
const PAUSE_MS_MAX = 600;

let example: Example;
let program = "";
beforeAll(async () => {
  example = await Example.build();
  program = await example.bundle(readFileSync(join(import.meta.dirname, "../end-to-end/asking-agent.ts"), "utf8"));
});
afterAll(() => example?.[Symbol.asyncDispose]());

interface Shown {
  readonly buttons: readonly string[];
  readonly articles: readonly string[];
  readonly alerts: readonly string[];
}

/** The test is compiled without the types of a browser. */
interface Element {
  readonly innerText: string;
  click(): void;
}
declare const document: { querySelectorAll(selector: string): Iterable<Element> };

function look(page: Page): Promise<Shown> {
  return page.evaluate(() => {
    const texts = (selector: string): string[] =>
      [...document.querySelectorAll(selector)].map(({ innerText }) => innerText.trim());
    return { buttons: texts("button"), articles: texts("article"), alerts: texts("[role=alert]") };
  });
}

/** It may be gone by now: then there is nothing to click. */
function click(page: Page, name: string): Promise<void> {
  return page.evaluate((text) => {
    [...document.querySelectorAll("button")].find(({ innerText }) => innerText.trim() === text)?.click();
  }, name);
}

/** What the page shows of a message. */
function wordsOf({ parts }: UIMessage): string[] {
  return parts.flatMap((part) => {
    if (part.type === "text") return [part.text];
    return isToolUIPart(part) ? [`${part.type.slice("tool-".length)}: ${part.state}`] : [];
  });
}

test.each(Array.from({ length: CHATS }, (_, n) => n))(
  "killed eight times in turns with approvals, the page ends as the journal, and nothing typed is lost: chat %i",
  async (chat) => {
    await using stage = new Stage(example, { "server.mjs": program });
    await stage.start();
    const page = await stage.tab();
    let draws = chat * 100_000;
    const draw = (): number => chance(seed, draws++);
    const pauses = Array.from({ length: KILLS }, () => draw() * PAUSE_MS_MAX);
    let isOver = false;
    const killing = (async () => {
      for (const ms of pauses) {
        await sleep(ms);
        await stage.kill();
        await stage.start();
      }
      isOver = true;
    })();
    const typed: string[] = [];
    /** Does what the page offers. Returns whether the last answer is complete and nothing is left to do. */
    const act = async (): Promise<boolean> => {
      const { buttons, articles } = await look(page);
      const offers = buttons.filter((name) => !["Deny", "Send", "Stop"].includes(name));
      const offer = offers[Math.floor(draw() * offers.length)];
      if (offer !== undefined) await click(page, offer);
      const isComplete = articles.length === 0 || articles.at(-1)!.endsWith("All is well.");
      if (offer !== undefined || !buttons.includes("Send") || !isComplete) return false;
      if (isOver && typed.length > 1) return true;
      const words = `Please work ${typed.length + 1}.`;
      typed.push(words);
      await page.getByLabel("Message").fill(words);
      await page.keyboard.press("Enter");
      await expect.poll(async () => (await look(page)).articles.includes(words)).toBe(true);
      return false;
    };
    const what = `seed ${seed}, chat ${chat}`;
    await expect
      .poll(act, { message: `${what}: the page comes to its end`, timeout: 240_000, interval: 30 })
      .toBe(true);
    await killing;
    await expect.poll(async () => (await stage.state()).status, { message: what }).toBe("ready");
    const { messages } = await stage.state();
    const prompts = messages.filter(({ role }) => role === "user").flatMap(wordsOf);
    expect(prompts, `${what}: every prompt is recorded, once`).toEqual(typed);
    await expect.poll(async () => (await look(page)).alerts, { message: what }).toEqual([]);
    const { articles } = await look(page);
    expect(articles, what).toHaveLength(messages.length);
    for (const [n, message] of messages.entries()) {
      const lines = articles[n]!.split("\n").filter((line) => line !== "");
      expect(
        lines.map((line) => line.replace(/ (?:".*")$/, "")),
        what,
      ).toEqual(wordsOf(message));
    }
    const effects = stage.lines("effects");
    expect(effects, `${what}: nothing is done twice`).toEqual([...new Set(effects)]);
    expect(stage.problems, what).toEqual([]);
  },
);
