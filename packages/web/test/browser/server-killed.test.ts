import { setTimeout as passed } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { type Account, accountOf, openStore } from "holdfast";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { seenOn, sightOf } from "./seen-as.ts";
import { Stage } from "./stage.ts";

/** The server dies at random while pages are open. HOLDFAST_KILLS=100 kills it a hundred times. */
const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 6);
const KILLS_PER_SESSION = 5;
const PROMPTS = [
  ...["tell me a story of 9000 words", "run sleep 2", "think about rivers", "tell me a story of 20 words"],
  "1. write a.txt: one 2. run sleep 1 3. append a.txt: two",
];
const ARGS = ["--allow", "shell(sleep *)", "--allow", "write(**)", "--allow", "edit(**)"];

const seed = seedOf(import.meta.url, "browser");
let state = seed;
/** Below `limit`. */
function chance(limit: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
  return Math.floor((state / 0x80000000) * limit);
}

const stage = new Stage(20);
beforeAll(() => stage.serve(ARGS));
afterEach(() => stage.closePages());
afterAll(() => stage[Symbol.asyncDispose]());

async function send(page: Page, text: string): Promise<void> {
  const field = page.locator(".composer textarea");
  await field.fill(text);
  await field.press("Enter");
}

/** What a person does with the session as it stands. The server may be killed before it hears of it. */
async function act(page: Page): Promise<void> {
  const isCutOff = (await page.locator(".interrupted").count()) > 0;
  const way = isCutOff ? chance(4) : 3;
  if (way < 2) await page.getByRole("button", { name: "Finish the turn" }).click();
  else if (way === 2) await page.getByRole("button", { name: "Leave it" }).click();
  else await send(page, PROMPTS[chance(PROMPTS.length)]!);
}

/** How a call stands, the server may know better than the journal: it looks for the processes that it had started. */
const gistOf = ({ state, calls }: Account): string[] => [state, ...calls.map(({ id }) => id)];

test("killed at random and started again: open pages show what the journal says, without a reload", async () => {
  await using store = await openStore(stage.store, { app: "holdfast" });
  let [id, pages]: [string, Page[]] = ["", []];
  for (let kill = 0; kill < KILLS; kill++) {
    if (kill % KILLS_PER_SESSION === 0) {
      await stage.closePages();
      id = await stage.newSession(`Kill ${kill}`);
      pages = [await stage.page(`/${id}`), await stage.page(`/${id}`)];
    }
    await act(pages[kill % 2]!);
    await passed(chance(2_500));
    await stage.kill();
    for (const page of pages) await page.locator(".offline").waitFor();
    // Nobody knows now what the agent does.
    for (const page of pages) expect(await page.locator(".session-meta .chip").innerText()).toBe("Not connected");
    await passed(chance(1_000));
    await stage.serve(ARGS);
    for (const page of pages) await page.locator(".offline").waitFor({ state: "detached" });
    // What a page had sent may reach the new server: whatever it does, all agree in the end.
    for (const page of pages)
      await expect
        .poll(async () => {
          const { account } = await stage.ask<{ account: Account }>("GET", `/sessions/${id}`);
          const recorded = accountOf(await store.read(id), { app: "holdfast" });
          const sight = sightOf(account);
          const seen = await seenOn(page, sight);
          const [journal, server] = [gistOf(recorded), gistOf(account)];
          return isDeepStrictEqual([seen, server], [sight, journal]) ? null : { journal, server, sight, seen };
        })
        .toBeNull();
  }
}, 3_600_000);
