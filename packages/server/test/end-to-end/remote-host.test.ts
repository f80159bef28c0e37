import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { seededRandom } from "../../../testkit/src/simulation/random.ts";
import { HoldfastClient, RemoteHost } from "../../src/client/index.ts";
import type { Chat, ChatEvent } from "../../src/contract/host.ts";
import { type Cut, CuttingProxy } from "../cutting-proxy.ts";
import { PATIENT, ServerStage } from "../server-stage.ts";

/** The events that a screen shows, with streamed text in one piece. */
function heard(chat: Chat): ChatEvent[] {
  const events: ChatEvent[] = [];
  chat.subscribe((event) => events.push(event));
  return events;
}

const said = (events: readonly ChatEvent[]): string =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("");

test("a chat in a server has the same state and the same events as the chat itself", async () => {
  await using stage = await ServerStage.start({ config: { offlineDelayMs: 1 } });
  const host = await RemoteHost.connect(stage.client);
  const remote = await host.create({ cwd: stage.work, title: "both" });
  const local = await stage.host.open(remote.id);
  const [there, here] = [heard(local), heard(remote)];
  expect(await remote.prompt("write notes.md: one")).toBe("started");
  await expect.poll(() => remote.state.asks.length, PATIENT).toBe(1);
  expect(await remote.prompt("hello")).toBe("queued");
  await expect.poll(() => remote.state.queue.length, PATIENT).toBe(1);
  expect(remote.state).toEqual(local.state);
  await remote.answer(remote.state.asks[0]!.call, "allow");
  await expect.poll(() => remote.state.status === "idle" && remote.state.queue.length === 0, PATIENT).toBe(true);
  await remote.rename("renamed");
  await expect.poll(() => remote.state.title, PATIENT).toBe("renamed");
  expect(remote.state).toEqual(local.state);
  expect(said(here)).toBe(said(there));
  const important = (events: readonly ChatEvent[]): string[] =>
    events.flatMap((event) =>
      event.type === "changed" || event.type === "text" || event.type === "item" ? [] : [JSON.stringify(event)],
    );
  expect(important(here)).toEqual(important(there));
  const items = (events: readonly ChatEvent[]) =>
    new Set(events.flatMap((e) => (e.type === "item" ? [e.item.id] : [])));
  expect(items(here)).toEqual(items(there));
  await host.close();
  expect(stage.server.hosting.feed(remote.id)).not.toBe(null);
});

test("the rest of the host: lists, searches, forks, prompts, and the latest session", async () => {
  await using stage = await ServerStage.start();
  const host = await RemoteHost.connect(stage.client);
  const chat = await host.create({ cwd: stage.work, labels: { team: "a b" } });
  await chat.prompt("hello there");
  await chat.settled();
  await expect.poll(() => chat.state.status, PATIENT).toBe("idle");
  expect((await host.list({ labels: { team: "a b" }, limit: 5 })).sessions).toMatchObject([{ id: chat.id, turns: 1 }]);
  expect((await host.list({ labels: { team: "b" } })).sessions).toEqual([]);
  expect((await Array.fromAsync(host.search("hello"))).map(({ session }) => session)).toContain(chat.id);
  expect(await host.prompts(stage.work, "")).toEqual(["hello there"]);
  expect((await host.peek(chat.id)).map(({ kind }) => kind)).toEqual(["prompt", "answer"]);
  const fork = await host.fork(chat.id, { cwd: tmpdir() });
  expect(fork.state).toMatchObject({ cwd: tmpdir(), items: [{ kind: "prompt" }, { kind: "answer" }] });
  // A prompt is answered when its turn is seen, so that `settled` waits for its end.
  for (let turns = 2; turns < 6; turns++) {
    await fork.prompt("and again");
    await fork.settled();
    expect(fork.state).toMatchObject({ status: "idle", items: { length: 2 * turns } });
  }
  expect((await host.latest(stage.work))?.id).toBeDefined();
  expect(await host.open(chat.id)).toBe(chat);
  await expect(chat.rewind("nothing")).rejects.toMatchObject({ code: "MESSAGE_UNKNOWN" });
  await chat.setModel("offline");
  chat.setMode("plan");
  await expect.poll(() => chat.state.mode, PATIENT).toBe("plan");
  await host.close();
});

test("a server that comes back on another port is found again, and only if it proves to be the same user's", async () => {
  await using stage = await ServerStage.start();
  await using stranger = await ServerStage.start();
  let now: string | null = null;
  const client = new HoldfastClient({ url: stage.server.url, token: stage.token, locate: () => now });
  const host = await RemoteHost.connect(client);
  const remote = await host.create({ cwd: stage.work });
  await remote.prompt("hello");
  await remote.settled();
  await stage.stop();
  await expect(host.list()).rejects.toMatchObject({ code: "SERVER_UNREACHABLE" });
  now = stranger.server.url;
  await expect(host.list()).rejects.toMatchObject({ code: expect.stringMatching(/^(TOKEN_MISSING|SERVER_UNPROVEN)$/) });
  await stage.start();
  now = stage.server.url;
  expect((await host.list()).sessions).toMatchObject([{ id: remote.id }]);
  expect(await (await host.open(remote.id)).prompt("and again")).toBe("started");
  const again = await host.open(remote.id);
  await again.settled();
  expect(again.state.items).toHaveLength(4);
  // A question that is asked while nobody is connected reaches the listeners of a chat that connects again.
  const here = heard(again);
  await stage.stop();
  await stage.start();
  const there = await stage.host.open(remote.id);
  await there.prompt("write notes.md: one");
  await there.settled();
  now = stage.server.url;
  await expect.poll(() => here.filter(({ type }) => type === "permission.asked"), PATIENT).toHaveLength(1);
  await host.close();
});

test("a screen whose connection is cut at random bytes ends with the same state and the same text", async () => {
  const random = seededRandom(seedOf(import.meta.url, "end-to-end"));
  await using stage = await ServerStage.start({
    config: { offlineDelayMs: 2 },
    allowed: { hosts: ["127.0.0.1"] },
  });
  let isCutting = false;
  const next = (): Cut | null =>
    isCutting ? { afterBytes: random.below(8000), how: random.pick(["reset", "end"] as const) } : null;
  await using proxy = await CuttingProxy.start(stage.server.port, next);
  const host = await RemoteHost.connect(new HoldfastClient({ url: proxy.url, token: stage.token }));
  const remote = await host.create({ cwd: stage.work });
  const local = await stage.host.open(remote.id);
  isCutting = true;
  const here = heard(remote);
  await local.prompt("tell me a story of 20 lines");
  proxy.cutAll();
  await local.settled();
  await expect.poll(() => here.some(({ type }) => type === "turn.ended"), PATIENT).toBe(true);
  isCutting = false;
  proxy.cutAll();
  await expect.poll(() => remote.state, PATIENT).toEqual(local.state);
  expect(proxy.cuts).toBeGreaterThan(0);
  await host.close();
});
