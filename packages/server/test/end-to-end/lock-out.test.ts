import { mkdtempDisposableSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { PATIENT, ServerStage } from "../server-stage.ts";

/** A client that never closes its side, and says only this. */
async function halfOpen(port: number, says = ""): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  await new Promise((resolve) => socket.once("connect", resolve));
  if (says !== "") socket.write(says);
  return socket;
}

/** Waits until the server has let go of the connection: what is sent to it then is refused. */
async function isLetGo(client: Socket): Promise<void> {
  let isRefused = false;
  client.on("close", () => {
    isRefused = true;
  });
  await expect
    .poll(() => {
      if (!isRefused) client.write("\r\n");
      return isRefused;
    }, PATIENT)
    .toBe(true);
}

test("a connection that says nothing and never closes its side is let go of", async () => {
  await using stage = await ServerStage.start({ limits: { headersMs: 200 } });
  for (const says of ["", "GET /server HTTP/1.1\r\nHost: 127", "nonsense\r\n\r\n"]) {
    const client = await halfOpen(stage.server.port, says);
    await new Promise((resolve) => client.once("end", resolve).resume());
    await isLetGo(client);
  }
});

test("a client that reads nothing of its answer is let go of; a stream without news is not", async () => {
  using page = mkdtempDisposableSync(join(tmpdir(), "holdfast-page-"));
  // More than a connection holds.
  writeFileSync(join(page.path, "large.js"), Buffer.alloc(32 * 1024 * 1024, " "));
  await using stage = await ServerStage.start({ limits: { stuckMs: 300 }, page: page.path });
  const id = await stage.session();
  const stream = await stage.fetch(`/sessions/${id}/events`);
  const client = (await halfOpen(stage.server.port, "GET /large.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).pause();
  await isLetGo(client);
  expect(stage.server.streams.count).toBe(1);
  await stream.body!.cancel();
});

test("a thousand requests at once on one connection are not answered", async () => {
  await using stage = await ServerStage.start();
  const requests = "GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(1000);
  const client = await halfOpen(stage.server.port, requests);
  let bytes = 0;
  client.on("data", (piece) => {
    bytes += piece.length;
  });
  await isLetGo(client);
  const { length } = await (await stage.fetch("/openapi.json")).text();
  expect(bytes).toBeLessThan(100 * length);
});

test("connections without a token, or with a read-only one, never keep the owner out", async () => {
  const connections = 20;
  await using stage = await ServerStage.start({ limits: { connections, headersMs: 60_000 } });
  const id = await stage.session();
  const own = await stage.fetch(`/sessions/${id}/events`);
  const reader = own.body!.getReader();
  await reader.read();
  const { token } = await stage.client.call("createShare", { params: { id }, body: {} });
  const readers = `GET /server HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const clients: Socket[] = [];
  for (const says of ["", "GET /server HTTP/1.1\r\n", readers])
    for (let i = 0; i < 2 * connections; i++) clients.push(await halfOpen(stage.server.port, says));
  expect((await stage.fetch("/sessions")).status).toBe(200);
  // What the owner had open before is still there.
  const chat = await stage.host.open(id);
  await chat.prompt("think about rivers");
  expect((await reader.read()).done).toBe(false);
  for (const client of clients) client.destroy();
  await reader.cancel();
});

test("one read-only link cannot take the streams of the others, nor all of them the owner's", async () => {
  await using stage = await ServerStage.start({ limits: { streams: 10, streamsPerShare: 3 } });
  const id = await stage.session();
  const opened: Response[] = [];
  const open = async (token: string): Promise<number> => {
    const answer = await stage.fetch(`/sessions/${id}/events`, { token });
    if (answer.status === 200) opened.push(answer);
    else expect(await answer.json()).toMatchObject({ code: "TOO_MANY_STREAMS" });
    return answer.status;
  };
  const statuses = async (token: string, count: number): Promise<number[]> => {
    const all: number[] = [];
    for (let i = 0; i < count; i++) all.push(await open(token));
    return all;
  };
  const tokens = await Promise.all(
    [1, 2].map(async () => (await stage.client.call("createShare", { params: { id }, body: {} })).token!),
  );
  expect(await statuses(tokens[0]!, 5)).toEqual([200, 200, 200, 503, 503]);
  expect(await statuses(tokens[1]!, 3)).toEqual([200, 200, 503]);
  expect(await statuses(stage.token, 6)).toEqual([200, 200, 200, 200, 200, 503]);
  for (const { body } of opened) await body!.cancel();
});

test("a read-only link has a few requests worked on at a time; the owner's do not wait for the others", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  const { token } = await stage.client.call("createShare", { params: { id }, body: {} });
  const read = async (by: string): Promise<number> => {
    const answer = await stage.fetch(`/sessions/${id}/timeline`, { token: by });
    await answer.text();
    return answer.status;
  };
  // Of a session that is not open and was read before, each request asks who has it.
  await stage.client.call("closeSession", { params: { id } });
  expect(await read(stage.token)).toBe(200);
  const { sessions } = stage.host;
  const holder = sessions.holder.bind(sessions);
  const isOpen = Promise.withResolvers<void>();
  let [inside, most] = [0, 0];
  sessions.holder = async (session) => {
    most = Math.max(most, ++inside);
    await isOpen.promise;
    inside--;
    return holder(session);
  };
  const readers = Array.from({ length: 20 }, () => read(token!));
  await expect.poll(() => inside, PATIENT).toBe(4);
  const own = read(stage.token);
  await expect.poll(() => inside, PATIENT).toBe(5);
  isOpen.resolve();
  expect(await own).toBe(200);
  expect(new Set(await Promise.all(readers))).toEqual(new Set([200]));
  expect(most).toBe(5);
});

test("what anybody may ask for without a token is made once, however often it is asked for", async () => {
  await using stage = await ServerStage.start();
  const made = vi.spyOn(JSON, "stringify");
  onTestFinished(() => made.mockRestore());
  for (let round = 0; round < 3; round++) {
    const answer = await stage.fetch("/openapi.json", { token: null });
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(await answer.json()).toHaveProperty("openapi");
  }
  expect(made.mock.calls.filter(([value]) => Object.hasOwn(Object(value), "openapi")).length).toBeLessThanOrEqual(1);
});
