import type { LanguageModel } from "ai";
import { newId, openStore } from "holdfast";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { type Server, startServer } from "../../../postgres/test/server/server.ts";
import { durableChat } from "../../src/ai-sdk/index.ts";
import { guideServer } from "../chat-server.ts";
import { Page, plain, textOf, transportOf } from "../page.ts";
import { finished } from "../scripted-model.ts";

/** Several servers on one store: a page can ask any of them. */

let database: Server | undefined;
beforeAll(async () => {
  // Nothing here cuts the power.
  database = await startServer(["fsync=off", "full_page_writes=off"]);
});
afterAll(() => database?.stop());

test("PostgreSQL: a page reconnects to another server, which shows the answer and goes on after the first is killed", async () => {
  await using servers = guideServer();
  const store = `${database!.url}?schema=chats`;
  const one = await servers.start({ store });
  const two = await servers.start({ store, isOther: true });
  const { page } = await servers.load(one.url);
  const sent = page.sendMessage({ text: "Please look." });
  await servers.says("speaking");
  await vi.waitFor(() => expect(page.text).toBe("I look first.That "), 60_000);
  const { page: other, resumed } = await servers.load(two.url);
  await vi.waitFor(() => expect(other.text).toBe("I look first.That "), 60_000);
  const retried = await servers.post({ message: page.messages[0] }, two.url);
  expect([retried.status, retried.headers.get("x-holdfast-repeated")]).toEqual([200, "true"]);
  const next = { id: "p2", role: "user", parts: [{ type: "text", text: "And now?" }] };
  const busy = await servers.post({ message: next }, two.url);
  expect([busy.status, busy.headers.get("x-holdfast-code")]).toEqual([409, "BUSY"]);

  await one.kill();
  await Promise.all([sent, resumed]);
  expect(other.status, "it learns that the answer broke off").toBe("error");
  await vi.waitFor(async () => expect((await servers.state(servers.id, two.url)).status).toBe("interrupted"), 60_000);
  servers.release();
  expect((await servers.post({ trigger: "continue" }, two.url)).status).toBe(202);
  const { page: third, resumed: rest } = await servers.load(two.url);
  await rest;
  await vi.waitFor(async () => expect((await servers.state(servers.id, two.url)).status).toBe("ready"), 60_000);
  const transcript = await servers.transcript(two.url);
  expect(textOf(transcript[1]!)).toBe("I look first.That was prompt 1: all is well.");
  expect(transcript.map(({ id }) => id)).toEqual(page.messages.map(({ id }) => id));
  expect(third.messages).toHaveLength(2);
  expect(servers.lines("effects")).toHaveLength(1);
  expect(await (await servers.post({ message: next }, two.url)).text()).toContain("prompt ");
});

/** Says a word whenever it is told to. */
function speaker(): { readonly model: LanguageModel; say(word: string): void; end(): void } {
  const { readable, writable } = new TransformStream<object, object>();
  const writer = writable.getWriter();
  const model = {
    specificationVersion: "v4",
    provider: "test",
    modelId: "test-1",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("this model only streams")),
    doStream: async () => ({ stream: readable }),
  } as unknown as LanguageModel;
  void writer.write({ type: "stream-start", warnings: [] });
  void writer.write({ type: "text-start", id: "t" });
  return {
    model,
    say: (delta) => void writer.write({ type: "text-delta", id: "t", delta }),
    end: () => {
      void writer.write({ type: "text-end", id: "t" });
      void writer.write(finished("stop"));
      void writer.close();
    },
  };
}

test("a page on another server sees the running answer grow, and its end; the same prompt there joins it", async () => {
  using folder = place();
  await using here = await openStore(folder.path, { recordsToolStarts: true });
  await using there = await openStore(folder.path, { recordsToolStarts: true });
  const { model, say, end } = speaker();
  const first = durableChat(here, { model });
  const second = durableChat(there, { model: "never/asked" });
  const id = newId();
  const page = new Page(id, [], { transport: transportOf(first.handle) });
  const sent = page.sendMessage({ text: "Count." });
  say("One ");
  await expect.poll(() => page.text).toBe("One ");
  const state = await second.state(id);
  expect(state.status).toBe("running");
  const other = new Page(id, state.messages, { transport: transportOf(second.handle) });
  const resumed = other.resumeStream();
  await expect.poll(() => other.text, { timeout: 60_000 }).toBe("One ");
  say("two ");
  await expect.poll(() => other.text, { timeout: 60_000 }).toBe("One two ");
  const body = JSON.stringify({ id, message: page.messages[0] });
  const headers = { "content-type": "application/json" };
  const retried = await second.POST(new Request("http://localhost/api/chat", { method: "POST", body, headers }));
  expect([retried.status, retried.headers.get("x-holdfast-repeated")]).toEqual([200, "true"]);
  const busy = await second.DELETE(new Request(`http://localhost/api/chat/${id}`, { method: "DELETE" }));
  expect(busy.status).toBe(409);
  say("three.");
  end();
  await Promise.all([sent, resumed]);
  expect(await retried.text()).toContain("[DONE]");
  await first.idle();
  expect(other.error).toBe(undefined);
  expect(other.shown).toEqual(page.shown);
  expect(other.shown).toEqual(plain((await second.state(id)).messages));
  expect((await second.state(id)).status).toBe("ready");
});
