import { openStore } from "holdfast";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { HOSTILE } from "./hostile-messages.ts";
import { Stage } from "./stage.ts";

const stage = new Stage();
const ids: string[] = [];

/** Each message in every place where a page shows text that others wrote. */
beforeAll(async () => {
  const store = await openStore(stage.store, { app: "holdfast", recordsToolStarts: true });
  for (const [index, text] of HOSTILE.entries()) {
    const session = await store.create({
      dialect: "ai-sdk",
      title: index % 3 === 0 ? text.slice(0, 200) : `message ${index}`,
      cwd: `/tmp/${text.slice(0, 60).replaceAll(/[\0/]/g, "_")}`,
    });
    const turn = await session.startTurn({ role: "user", content: text });
    await turn.append({
      role: "assistant",
      content: [
        { type: "reasoning", text },
        { type: "text", text },
        {
          type: "tool-call",
          toolCallId: "a",
          toolName: text.slice(0, 60),
          input: { path: text, old: text, new: `${text}!` },
        },
        {
          type: "tool-call",
          toolCallId: "b",
          toolName: "edit",
          input: { path: text.slice(0, 100), old: "x", new: text },
        },
      ],
    });
    await turn.toolStarted("a");
    await turn.toolEnded("a", { value: text });
    await turn.toolStarted("b");
    await turn.toolEnded("b", { error: new Error(text) });
    const second = turn.request();
    second.draft.push({ type: "text", text } as never);
    if (index % 2 === 0) await turn.abort({ by: text.slice(0, 100), reason: text });
    else await turn.fail(new Error(text));
    await session.close();
    ids.push(session.id);
  }
  await store.close();
  await stage.serve();
});
afterEach(() => stage.closePages());
afterAll(() => stage[Symbol.asyncDispose]());

/** What no message may bring into the page. */
const FORBIDDEN = [
  ".transcript :is(script, iframe, object, embed, link, style, meta, base, form, svg:not(.icon), math, video, audio, input, textarea, select)",
  ".markdown :is(img, button, [style], [id], [onerror], [onload], [onclick], .button, .interrupted)",
  ".markdown a[href]:not([href^='http:'], [href^='https:'], [href^='mailto:'])",
  ".markdown a[href]:not([rel~=noopener])",
].join(", ");

test(`${HOSTILE.length} hostile messages are shown as harmless text`, async () => {
  expect(HOSTILE.length).toBeGreaterThanOrEqual(60);
  const page = await stage.page("/");
  for (const [index, id] of ids.entries()) {
    await page.goto(`${stage.url}/#/${id}`);
    await page.locator(".item-answer .markdown").first().waitFor({ state: "attached" });
    for (const summary of await page.locator("details.reasoning:not([open]) > summary").all()) await summary.click();
    const found = await page.locator(FORBIDDEN).evaluateAll((all) => all.map((one) => one.outerHTML.slice(0, 200)));
    expect([HOSTILE[index], found]).toEqual([HOSTILE[index], []]);
    expect([HOSTILE[index], await page.evaluate(() => "hacked" in window)]).toEqual([HOSTILE[index], false]);
    // Links do not run anything either.
    for (const link of await page.locator(".markdown a:not([href^=http])").all())
      await link.click({ force: true, timeout: 500 }).catch(() => {});
    expect(await page.evaluate(() => "hacked" in window)).toBe(false);
    expect(new URL(page.url()).origin).toBe(stage.url);
  }
  // Nothing was asked of another server, and no policy had to step in.
  expect(page.problems).toEqual([]);
});

test("what the person reads is what the message says", async () => {
  const page = await stage.page(`/${ids[HOSTILE.indexOf("<script>window.hacked=1</script>")]}`);
  await page.locator(".item-prompt .plain", { hasText: "<script>window.hacked=1</script>" }).waitFor();
  await page.locator(".item-answer .markdown", { hasText: "<script>window.hacked=1</script>" }).first().waitFor();
  const turned = HOSTILE.findIndex((text) => text.startsWith("\u202E"));
  await page.goto(`${stage.url}/#/${ids[turned]}`);
  await page.locator(".item-prompt .plain", { hasText: "⟨U+202E⟩gnp.exe" }).waitFor();
  await page.locator(".item-answer .markdown", { hasText: "⟨U+202E⟩gnp.exe" }).first().waitFor();
});
