import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { HoldfastClient, type ServerEvent } from "../../src/client/index.ts";
import { WAITING_BYTES_MAX } from "../../src/events/event-stream.ts";
import type { TextEvent } from "../../src/schemas/events.ts";
import { PATIENT, ServerStage } from "../server-stage.ts";

/** The events of a session, from a position to the end of its turn. */
async function eventsOf(stage: ServerStage, id: string, after?: string): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of stage.client.events(id, after === undefined ? {} : { after })) {
    events.push(event);
    if (event.name === "record" && event.data.includes('"turn.ended"')) return events;
  }
  throw new Error("the stream ended before the turn did");
}

const records = (events: readonly ServerEvent[]): string[] =>
  events.filter(({ name }) => name === "record").map(({ lastId, data }) => `${lastId.replace(/~.*/, "")} ${data}`);

test("a client that comes back with any id gets exactly what it missed", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  await stage.client.call("startTurn", { params: { id }, body: { text: "hello" } });
  const all = records(await eventsOf(stage, id));
  expect(all.length).toBeGreaterThan(5);
  for (const [index, record] of all.slice(0, -1).entries()) {
    const after = record.slice(0, record.indexOf(" "));
    expect(records(await eventsOf(stage, id, after))).toEqual(all.slice(index + 1));
  }
});

test("streamed text does not wait for the journal, which gathers it", async () => {
  await using stage = await ServerStage.start({ config: { offlineDelayMs: 5 } });
  const id = await stage.session();
  // The client is there before anything is said: what was said before it came would be one piece.
  const followed = eventsOf(stage, id);
  await expect.poll(() => stage.server.streams.count, PATIENT).toBe(1);
  await stage.client.call("startTurn", { params: { id }, body: { text: "tell me a story of 30 lines" } });
  const kinds = (await followed).map(({ name, data }) => (name === "record" ? JSON.parse(data).kind : name));
  const drafts = kinds.filter((kind) => kind === "draft").length;
  expect(drafts).toBeGreaterThan(0);
  // The first words come before the first draft, and there are many pieces of text for each draft.
  expect(kinds.indexOf("text")).toBeLessThan(kinds.indexOf("draft"));
  expect(kinds.filter((kind) => kind === "text").length).toBeGreaterThan(3 * drafts);
});

test("a client whose last id is not in the journal is told to start over, and gets everything", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  await stage.client.call("startTurn", { params: { id }, body: { text: "hello" } });
  const all = records(await eventsOf(stage, id));
  for (const after of ["3-00000000", "999999-00000000", "nonsense", `${"9".repeat(40)}-ab`]) {
    const events = await eventsOf(stage, id, after);
    const start = events.findIndex(({ name }) => name === "start-over");
    expect(events[start]).toMatchObject({ lastId: "", data: expect.stringContaining("CURSOR_STALE") });
    expect(records(events.slice(0, start))).toEqual([]);
    expect(records(events)).toEqual(all);
  }
});

test("streamed text comes once, however often the connection is cut", async () => {
  await using stage = await ServerStage.start({ config: { offlineDelayMs: 1 } });
  const id = await stage.session();
  // Longer than any test runs.
  await stage.client.call("startTurn", { params: { id }, body: { text: "tell me a story of 4000 lines" } });
  /** Of each answer: how many characters came, of all channels, and its text. */
  const answers = new Map<string, { length: number; text: string }>();
  let [last, connections, isOver] = ["start", 0, false];
  while (!isOver) {
    // Each of the connections before the last has seen text.
    if (connections === 12) await stage.client.call("stopTurn", { params: { id } });
    let [seen, hasText] = [0, false];
    for await (const { name, data, lastId } of stage.client.events(id, { after: last })) {
      last = lastId || last;
      if (name === "record" && data.includes('"turn.ended"')) isOver = true;
      if (name === "text") {
        hasText = true;
        const { answer, at, channel, text } = JSON.parse(data) as TextEvent;
        const before = answers.get(answer) ?? { length: 0, text: "" };
        expect(at).toBe(before.length);
        answers.set(answer, {
          length: at + text.length,
          text: channel === "text" ? before.text + text : before.text,
        });
      }
      // A few events, then the client goes away.
      if (isOver || ++seen > 7) break;
    }
    if (hasText) connections++;
  }
  expect(connections).toBeGreaterThanOrEqual(12);
  const { items } = await stage.client.call("getTranscript", { params: { id } });
  const said = items.findLast((item) => item.kind === "answer");
  // What was recorded while nobody was connected is in the record of the answer, and not streamed any more.
  for (const { text } of answers.values()) expect(said).toMatchObject({ text: expect.stringContaining(text) });
  expect(answers.size).toBe(1);
});

test("a client that does not read costs bounded memory, does not slow the session, and loses no record", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  const { port } = stage.server;
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.pause();
  socket.write(
    `GET /sessions/${id}/events?after=start HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${stage.token}\r\n\r\n`,
  );
  await expect.poll(() => stage.server.streams.count, PATIENT).toBe(1);
  const chat = await stage.host.open(id);
  const title = "x".repeat(60_000);
  let most = 0;
  for (let n = 0; n < 150; n++) {
    await chat.rename(`${n} ${title}`);
    most = Math.max(most, stage.server.streams.waitingBytes);
  }
  // What waits, and one record or state beyond it.
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(WAITING_BYTES_MAX + 5 * title.length);

  let text = "";
  socket.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
  });
  socket.resume();
  const last = new RegExp(`"title":"149 ${"x".repeat(100)}`);
  await expect.poll(() => last.test(text) && stage.server.streams.waitingBytes === 0, PATIENT).toBe(true);
  await expect.poll(() => (text.match(/event: record/g) ?? []).length, PATIENT).toBeGreaterThan(150);
  const seqs = Array.from(text.matchAll(/\nid: (\d+)-[^\n]+\nevent: record/g), ([, seq]) => Number(seq));
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  // What was left out of the state comes as a whole.
  expect(text.match(/"whole":true/g)?.length).toBeGreaterThan(1);
  socket.destroy();
});

test("followers of a session that nobody has open see what another process records", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session({ title: "one" });
  await stage.client.call("closeSession", { params: { id } });
  const { openStore } = await import("holdfast");
  await using other = await openStore(stage.folder);
  const seen: string[] = [];
  const following = (async () => {
    for await (const { name, data } of stage.client.events(id, { after: "end" })) {
      seen.push(name);
      if (data.includes("by another process")) return;
    }
  })();
  await expect.poll(() => stage.server.streams.count, PATIENT).toBe(1);
  const session = await other.resume(id);
  await session.rename("by another process");
  await following;
  expect(seen).toContain("record");
  expect(seen).not.toContain("state");
  await session.close();
});

test("a HEAD request opens no stream", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  expect((await stage.fetch(`/sessions/${id}/events`, { method: "HEAD" })).status).toBe(405);
  expect(stage.server.streams.count).toBe(0);
});

test("a client that leaves before the server has answered has no events, and no error", async () => {
  const asked = Promise.withResolvers<void>();
  // Accepts connections, and never answers.
  const silent = createServer(() => asked.resolve()).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const leaving = new AbortController();
  const client = new HoldfastClient({ url: `http://127.0.0.1:${port}`, token: "none" });
  const events = Array.fromAsync(client.events("s", { signal: leaving.signal }));
  await asked.promise;
  leaving.abort();
  expect(await events).toEqual([]);
  silent.close();
});

test("a deleted session ends its streams with a word", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  const events = (async () => await Array.fromAsync(stage.client.events(id)))();
  await expect.poll(() => stage.server.streams.count, PATIENT).toBe(1);
  await stage.client.call("deleteSession", { params: { id } });
  const names = (await events).map(({ name }) => name);
  expect(names.at(-1)).toBe("deleted");
  expect(names).toContain("closed");
});
