import { once } from "node:events";
import { linkSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { controlFrame, DATA, FRAMES_VERSION, type Frame, FrameReader, headerOf } from "../../../src/layout/frames.ts";
import { agentKey, factsFile, newSocket, removeStale, socketsIn } from "../../../src/layout/place.ts";
import { Supervisor } from "../../../src/layout/supervisor.ts";
import { Outlet } from "../../../src/wrap/outlet.ts";
import type { WrappedAgent } from "../../../src/wrap/wrapped-agent.ts";

test("frames come out as they went in, however they are cut", () => {
  const data = Buffer.from("one\ntwo é🚀\n");
  const bytes = Buffer.concat([
    headerOf(DATA, data.length),
    data,
    controlFrame({ type: "answered", id: "é" }),
    headerOf(DATA, 0),
    controlFrame({ type: "leave" }),
  ]);
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new FrameReader();
    const frames: Frame[] = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...reader.push(bytes.subarray(at, at + size)));
    const pieces = frames.flatMap((frame) => ("bytes" in frame ? [frame.bytes] : []));
    expect(Buffer.concat(pieces)).toEqual(data);
    expect(frames.flatMap((frame) => ("control" in frame ? [frame.control] : []))).toEqual([
      { type: "answered", id: "é" },
      { type: "leave" },
    ]);
  }
});

test("what is no frame is refused before anything of it is kept", () => {
  expect(() => [...new FrameReader().push(Buffer.from("GET / HTTP/1.1\r\n"))]).toThrow(/does not speak/);
  expect(() => [...new FrameReader().push(headerOf(1, 2 ** 31))]).toThrow(/does not speak/);
});

test("the key of an agent is its command, folder, store and environment, without what changes by itself", () => {
  const key = agentKey(["agent"], "/store");
  expect(agentKey(["agent", "--x"], "/store")).not.toBe(key);
  expect(agentKey(["agent"], "/other")).not.toBe(key);
  process.env["SHLVL"] = "7";
  expect(agentKey(["agent"], "/store")).toBe(key);
  process.env["LAYOUT_TEST_KEY"] = "secret";
  expect(agentKey(["agent"], "/store")).not.toBe(key);
  delete process.env["LAYOUT_TEST_KEY"];
});

test.skipIf(process.platform === "win32")(
  "the socket of a supervisor that was killed is removed, one that listens is found",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "hf-layout-"));
    try {
      const key = agentKey(["agent"], "/store");
      const live = newSocket(folder, key);
      const dead = newSocket(folder, key);
      writeFileSync(join(folder, `${key}-00000000.sock`), "not a socket");
      const server = createServer().listen(live);
      await once(server, "listening");
      // A second name of a socket that nobody listens on any more, as a kill leaves it.
      const closed = createServer();
      await once(closed.listen(join(folder, "closed")), "listening");
      linkSync(join(folder, "closed"), dead);
      closed.close();
      await once(closed, "close");
      const never = { pid: 2 ** 22 + 1, started: "1", agent: null };
      writeFileSync(factsFile(dead), JSON.stringify(never));
      expect(socketsIn(folder, key).sort()).toEqual([dead, live].sort());
      expect(socketsIn(folder, "000000000000")).toEqual([]);
      await removeStale(dead);
      expect(socketsIn(folder)).toEqual([live]);
      server.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

test("an outlet that waits for its reader leaves nothing behind", async () => {
  const stream = new PassThrough({ highWaterMark: 10 });
  const outlet = new Outlet(stream);
  const before = ["drain", "close", "error"].map((name) => stream.listenerCount(name));
  for (let n = 0; n < 50; n++) {
    const written = outlet.write(Buffer.alloc(20), Buffer.alloc(5));
    stream.read();
    await written;
  }
  expect(["drain", "close", "error"].map((name) => stream.listenerCount(name))).toEqual(before);
  const stuck = outlet.write(Buffer.alloc(100));
  stream.destroy();
  await stuck;
  await outlet.write(Buffer.alloc(100));
});

test.skipIf(process.platform === "win32")("a supervisor ends, whatever happens to the journals", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hf-layout-"));
  try {
    const end = async (): Promise<never> => {
      throw new Error("the disk is full");
    };
    const logged: string[] = [];
    const ready = Promise.withResolvers<void>();
    const supervisor = new Supervisor({
      ...{ socket: newSocket(folder, agentKey(["agent"], "/store")), graceMs: 0, onReady: ready.resolve },
      log: (line) => void logged.push(line),
      wrap: () => ({ agent: null, end }) as unknown as WrappedAgent,
    });
    const over = supervisor.run();
    await ready.promise;
    await supervisor.stop("SIGTERM");
    expect(await over).toEqual({ code: 1, signal: null });
    expect(logged.join("\n")).toContain("the disk is full");
    expect(socketsIn(folder)).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a supervisor whose agent cannot be started stays until its shim has read that, also if the shim still sends", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-layout-"));
  const socket = newSocket(folder, "0123456789ab");
  const agent = {
    agent: null,
    attach: () => ({}),
    start: () => Promise.reject(Object.assign(new Error("no such agent"), { code: "ENOENT", syscall: "spawn" })),
  };
  const ready = Promise.withResolvers<void>();
  const supervisor = new Supervisor({
    ...{ socket, graceMs: 0, log: () => undefined, onReady: ready.resolve },
    wrap: () => agent as unknown as WrappedAgent,
  });
  let isOver = false;
  const over = supervisor.run().then(() => {
    isOver = true;
  });
  await ready.promise;
  const shim = connect({ path: socket, allowHalfOpen: true });
  shim.write(controlFrame({ type: "hello", version: FRAMES_VERSION }));
  const reader = new FrameReader();
  const said: Frame[] = [];
  // To the end of what the supervisor says.
  for await (const chunk of shim.iterator({ destroyOnReturn: false })) said.push(...reader.push(chunk as Buffer));
  expect(said.at(-1)).toMatchObject({ control: { type: "failed", code: "ENOENT" } });
  expect(isOver).toBe(false);
  shim.end(controlFrame({ type: "leave" }));
  await over;
  rmSync(folder, { recursive: true });
});
