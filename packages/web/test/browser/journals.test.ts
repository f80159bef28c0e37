import { type Account, openStore } from "holdfast";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { expectedGist, gistOf, type Journal, writeJournals } from "../../../holdfast/test/journals/journals.ts";
import { lives } from "../../../holdfast/test/journals/lives.ts";
import { seenAs } from "./seen-as.ts";
import { Stage } from "./stage.ts";

/** The killed sessions that every surface is held to, as the page shows them. */

const stage = new Stage();
let own: readonly Journal[] = [];
let foreign: readonly Journal[] = [];
beforeAll(async () => {
  own = await writeJournals(stage.store, "holdfast", stage.work);
  foreign = await writeJournals(stage.store, "other", stage.work);
  await stage.serve();
});
afterEach(() => stage.closePages());
afterAll(() => stage[Symbol.asyncDispose]());

test.each(
  lives().flatMap(({ name }) => [
    [name, "this program's", "writer"] as const,
    [name, "another program's", "another"] as const,
  ]),
)("%s, %s: the page shows and offers what the account says", async (name, _, asking) => {
  const { id, expected } = (asking === "writer" ? own : foreign).find((one) => one.name === name)!;
  const { account } = await stage.ask<{ account: Account }>("GET", `/sessions/${id}`);
  expect(gistOf(account)).toEqual(expectedGist(expected, asking, { decides: false }));
  const page = await stage.page(`/${id}`, { colorScheme: "light" });
  await seenAs(page, account);
  const calls = await page.locator(".interrupted .loss-call").allInnerTexts();
  expect(calls.map((text) => text.replace(/\s+/g, " "))).toEqual(
    account.calls.map((call) => `look at: ${call.id} ${call.words}`),
  );
  if (asking === "another") await page.getByText('It was written by "other"').waitFor();
  expect(page.problems).toEqual([]);
});

test.each(["ended", "b starts"])("%s: taken over, it can be continued", async (name) => {
  const { id } = foreign.find((one) => one.name === name)!;
  const page = await stage.page(`/${id}`);
  await page.getByRole("button", { name: "Take it over" }).click();
  await page.locator(".composer textarea").waitFor();
  const { account } = await stage.ask<{ account: Account }>("GET", `/sessions/${id}`);
  expect(account.can.prompt).toBe(true);
  await seenAs(page, account);
});

test("open in another process: the page says where, and takes a prompt once it is free", async () => {
  const { id } = own.find(({ name }) => name === "ended")!;
  const page = await stage.page(`/${id}`);
  await page.locator(".composer textarea").fill("not sent yet");
  await using store = await openStore(stage.store, { app: "elsewhere" });
  // Writes nothing.
  const session = await store.resume(id);
  // In the head, and in place of the composer.
  for (const place of [".held", "p:not(.session-meta)"])
    await page.locator(place, { hasText: `It is open in "elsewhere" (process ${process.pid} on` }).waitFor();
  expect(await page.locator(".composer textarea").count()).toBe(0);
  await session.close();
  await page.locator(".composer textarea").waitFor();
  expect(await page.locator(".composer textarea").inputValue()).toBe("not sent yet");
});
