import type { Account } from "holdfast";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { gistOf } from "../../../holdfast/test/journals/journals.ts";

const WORDS: Readonly<Record<Account["state"], string>> = {
  ...{ idle: "Idle", waiting: "Waiting for you", paused: "Continues by itself", parked: "Given up: retry?" },
  ...{ interrupted: "Interrupted", stopped: "Stopped", failed: "Failed", running: "Running" },
};

/** The buttons for each act, where the page has one. */
const BUTTONS: readonly (readonly [act: string, name: string])[] = [
  ["finish", "Finish the turn"],
  ["leave", "Leave it"],
  ["fork", "Fork from here"],
  ["takeOver", "Take it over"],
];

/** What a page shows of a session: its state, what was in flight, and what can be done with it. */
export interface Sight {
  readonly state: string;
  readonly title: string | null;
  readonly calls: readonly string[];
  readonly buttons: readonly string[];
  readonly takesPrompt: boolean;
}

export function sightOf(account: Account): Sight {
  const isCutOff = account.interruption !== null;
  const { choices } = gistOf(account);
  const isThere = (act: string): boolean => choices.includes(act) && (isCutOff || act === "takeOver");
  return {
    state: WORDS[account.state],
    title: isCutOff ? `Turn ${account.turn}: ${account.words.status}` : null,
    calls: account.calls.map(({ words }) => words),
    buttons: BUTTONS.filter(([act]) => isThere(act)).map(([, name]) => name),
    takesPrompt: choices.includes("prompt"),
  };
}

export async function seenOn(page: Page, { title, calls }: Sight): Promise<Sight> {
  const pane = page.locator(".session-pane");
  const count = (name: string): Promise<number> => pane.getByRole("button", { name, exact: true }).count();
  const counts = await Promise.all(BUTTONS.map(async ([, name]) => [name, await count(name)] as const));
  const [head = null] = await page.locator(".interrupted h2").allInnerTexts();
  const lines = (await page.locator(".interrupted .loss-call").allInnerTexts()).map((text) =>
    text.replace(/\s+/g, " "),
  );
  return {
    state: (await page.locator(".session-meta .chip").allInnerTexts()).join().trim(),
    // Of what stands there, the account's words; the page adds names and inputs.
    title: title !== null && head?.includes(title) ? title : head,
    calls: lines.map((line, i) => (calls[i] && line.endsWith(calls[i]) ? calls[i] : line)),
    buttons: counts.filter(([, there]) => there > 0).map(([name]) => name),
    takesPrompt: (await page.locator(".composer textarea").count()) === 1,
  };
}

/** Waits until the page shows what the account says. */
export async function seenAs(page: Page, account: Account): Promise<void> {
  const sight = sightOf(account);
  await expect.poll(() => seenOn(page, sight)).toEqual(sight);
}
