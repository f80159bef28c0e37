import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, linkSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { type Control, controlFrame, DATA, FrameReader, STDERR } from "../../../src/layout/frames.ts";
import {
  agentKey,
  endOrphan,
  factsFile,
  leftIn,
  newSocket,
  removeStale,
  retire,
  socketsIn,
} from "../../../src/layout/place.ts";
import { Shim, type ShimEnd } from "../../../src/layout/shim.ts";
import { startOf } from "../../../src/wrap/process-family.ts";
import { frame } from "../../supervised.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const KEY = agentKey(["agent"], "/store");
const READY = ["/bin/sh", "-c", "echo ready >&3"];
const poll = (read: () => unknown) => expect.poll(read, { interval: 5, timeout: 10_000 });

/** A supervisor that the test speaks for. `first`: its answer to a greeting. */
class Spoken {
  readonly controls: Any[] = [];
  received = "";
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #link: Socket | null = null;

  constructor(path: string, first: Buffer | null = controlFrame({ type: "welcome", client: 4 })) {
    this.#server = createServer((socket) => {
      const reader = new FrameReader();
      this.#sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => this.#sockets.delete(socket));
      socket.on("data", (chunk) => {
        for (const one of reader.push(chunk as Buffer)) {
          if ("bytes" in one) this.received += String(one.bytes);
          else this.controls.push(one.control);
          if (!("control" in one) || one.control.type !== "hello") continue;
          this.#link = socket;
          if (first) socket.write(first);
        }
      });
    }).listen(path);
  }

  write(...frames: (Control | Buffer)[]): void {
    for (const one of frames) this.#link!.write(Buffer.isBuffer(one) ? one : controlFrame(one));
  }

  get connections(): number {
    return this.#sockets.size;
  }

  kill(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

interface Stage extends AsyncDisposable {
  readonly folder: string;
  readonly input: PassThrough;
  readonly shown: () => string;
  readonly logged: () => string;
  readonly started: Spoken[];
  readonly over: Promise<ShimEnd>;
}

/** A shim whose supervisors the test speaks for. */
function stage(options: { folder?: string; command?: readonly string[]; isThere?: boolean } = {}): Stage {
  const { folder = mkdtempSync(join(tmpdir(), "hf-shim-")), command = READY, isThere = true } = options;
  const [input, output, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const texts = ["", ""];
  output.on("data", (chunk) => {
    texts[0] += String(chunk);
  });
  stderr.on("data", (chunk) => {
    texts[1] += String(chunk);
  });
  const started: Spoken[] = [];
  const supervisor = (socket: string): readonly string[] => {
    if (isThere) started.push(new Spoken(socket));
    return command;
  };
  const over = new Shim({ folder, key: KEY, supervisor, logFile: null, input, output, stderr }).run();
  over.catch(() => undefined);
  return {
    ...{ folder, input, started, over, shown: () => texts[0]!, logged: () => texts[1]! },
    [Symbol.asyncDispose]: async () => {
      for (const one of started) one.kill();
      input.end();
      await over.catch(() => undefined);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const request = (id: number, method: string, params: object = {}): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
const helloOf = ({ controls }: Spoken): Any => controls.find(({ type }) => type === "hello");

describe.skipIf(process.platform === "win32")("a shim", () => {
  test("starts a supervisor if there is none, and passes lines, logs and the end", async () => {
    await using it = stage();
    await poll(() => it.started[0]?.controls).toEqual([
      { type: "hello", version: 1 },
      { type: "life", client: 4 },
    ]);
    const [supervisor] = it.started as [Spoken];
    it.input.write('{"one":');
    it.input.write("1}\n\n{");
    await poll(() => supervisor.received).toBe('{"one":1}\n\n');
    supervisor.write(frame(DATA, "to the editor\n"), frame(STDERR, "to its log\n"));
    await poll(it.shown).toBe("to the editor\n");
    await poll(it.logged).toBe("to its log\n");
    it.input.end('"two":2}');
    await poll(() => supervisor.received).toBe('{"one":1}\n\n{"two":2}');
    await poll(() => supervisor.controls.at(-1)).toEqual({ type: "leave" });
    supervisor.write({ type: "ended", code: 3, signal: null });
    supervisor.kill();
    expect(await it.over).toEqual({ type: "ended", code: 3, signal: null });
    expect(it.logged()).toBe("to its log\n");
  });

  test("ends with what came together with the welcome", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hf-shim-"));
    const failed: Control = { type: "failed", code: "ENOENT", syscall: "spawn", message: "no such agent" };
    const first = Buffer.concat([
      controlFrame({ type: "welcome", client: 1 }),
      frame(STDERR, "why\n"),
      controlFrame(failed),
      frame(STDERR, "more\n"),
    ]);
    const there = new Spoken(newSocket(folder, KEY), first);
    await using it = stage({ folder });
    await poll(it.logged).toBe("why\nmore\n");
    there.kill();
    expect(await it.over).toEqual(failed);
    expect(it.started).toEqual([]);
  });

  test("joins one that waits, and passes by one that is busy, one that is gone and other agents'", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hf-shim-"));
    const busy = new Spoken(newSocket(folder, KEY), controlFrame({ type: "busy" }));
    const other = newSocket(folder, "0123456789ab");
    const another = new Spoken(other);
    {
      await using it = stage({ folder });
      await poll(() => it.started[0]?.controls.length).toBe(2);
      expect(busy.controls).toEqual([{ type: "hello", version: 1 }]);
      expect(another.controls).toEqual([]);
      // It is not left connected to the one that is busy.
      await poll(() => busy.connections).toBe(0);
      expect(socketsIn(folder)).toHaveLength(3);
      busy.kill();
      another.kill();
    }
  });

  test.for([
    ["says nothing", ["/bin/true"], true, "the supervisor could not be started"],
    ["is not there", ["/nonexistent"], true, "the supervisor could not be started"],
    ["says why", ["/bin/sh", "-c", "echo ' the store is damaged ' >&3"], true, "the store is damaged"],
    ["is ready and gone", READY, false, "the supervisor of the agent ended while it started"],
  ] as const)("fails if the supervisor %s", async ([, command, isThere, words]) => {
    await using it = stage({ command, isThere });
    await expect(it.over).rejects.toThrow(new Error(words));
  });

  test("starts another supervisor for the next line, and tells it what the editor said and opened", async () => {
    await using it = stage();
    await poll(() => it.started[0]?.controls.length).toBe(2);
    const initialize = { protocolVersion: 1, clientCapabilities: {} };
    it.input.write(request(1, "initialize", initialize) + request(2, "session/new"));
    const [first] = it.started as [Spoken];
    await poll(() => first.received).toContain("session/new");
    const opened = (session: string, params: object | null) =>
      ({ type: "opened", session, params, chosen: [] }) as Control;
    first.write(opened("a", { cwd: "/a" }), opened("b", { cwd: "/b" }), opened("a", null));
    first.write({ type: "answered", id: 1 }, frame(DATA, "done\n"));
    await poll(it.shown).toBe("done\n");
    first.kill();
    await poll(it.shown).toContain('"interrupted":true');
    // Only the one without an answer.
    expect(
      it
        .shown()
        .split("\n")
        .slice(1, -1)
        .map((line) => JSON.parse(line).id),
    ).toEqual([2]);
    expect(it.logged()).toContain("the supervisor of the agent has died. What was said so far is recorded");
    expect(it.started).toHaveLength(1);
    it.input.write(request(3, "session/list"));
    await poll(() => it.started[1]?.received).toBe(request(3, "session/list"));
    expect(helloOf(it.started[1]!)).toEqual({
      ...{ type: "hello", version: 1 },
      continues: { initialize, opened: [["b", { cwd: "/b" }, []]] },
    });
    await poll(it.logged).toContain("the supervisor was started again");
    // Its death is the fault of nobody who was answered.
    it.started[1]!.kill();
    await poll(() => it.shown().split("\n").length).toBe(4);
    expect(JSON.parse(it.shown().split("\n")[2]!)).toMatchObject({ id: 3, error: { code: -32603 } });
  });

  test("a supervisor in place of one that was told nothing continues nothing", async () => {
    await using it = stage();
    await poll(() => it.started[0]?.controls.length).toBe(2);
    it.started[0]!.kill();
    await poll(it.logged).toContain("has died");
    it.input.write("\n");
    await poll(() => it.started[1]?.received).toBe("\n");
    expect(helloOf(it.started[1]!)).toEqual({ type: "hello", version: 1 });
  });

  test("gives up after the third supervisor in a row that died", async () => {
    await using it = stage();
    for (let deaths = 0; deaths < 4; deaths++) {
      await poll(() => it.started[deaths]?.controls.length).toBe(2);
      it.started[deaths]!.kill();
      await poll(() => it.logged().split("has died").length - 1).toBe(deaths + 1);
      it.input.write(request(deaths, "session/list"));
    }
    expect(await it.over).toEqual({ type: "lost", why: "it died 4 times" });
    expect(it.started).toHaveLength(4);
  });

  test.for(["before", "after"])("is lost with a supervisor that dies %s the editor leaves", async (when) => {
    await using it = stage();
    await poll(() => it.started[0]?.controls.length).toBe(2);
    if (when === "after") {
      it.input.end();
      await poll(() => it.started[0]!.controls.at(-1)).toEqual({ type: "leave" });
    }
    it.started[0]!.kill();
    await poll(it.logged).toContain("has died");
    if (when === "before") it.input.end();
    expect(await it.over).toEqual({ type: "lost", why: "it was killed" });
  });

  test("ends the agent of a supervisor that was killed, and of one that another shim left", async () => {
    const orphans = [0, 1].map((n) => {
      const mark = `HOLDFAST_WRAPPED=shim-${process.pid}-${n}`;
      const child = spawn("/bin/sleep", ["600"], { env: { HOLDFAST_WRAPPED: mark.slice(17) } });
      return { mark, pid: child.pid!, ended: once(child, "exit") };
    }) as [Any, Any];
    const facts = async ({ pid, mark }: Any) => ({ pid, mark, started: await startOf(pid) });
    const folder = mkdtempSync(join(tmpdir(), "hf-shim-"));
    const stale = newSocket(folder, "0123456789ab");
    const left = createServer().listen(join(folder, "there"));
    await once(left, "listening");
    linkSync(join(folder, "there"), stale);
    await new Promise((resolve) => left.close(resolve));
    const never = { pid: 2 ** 22 + 1, started: "1", agent: await facts(orphans[1]) };
    writeFileSync(factsFile(stale), JSON.stringify(never));
    await using it = stage({ folder });
    await orphans[1].ended;
    await poll(() => existsSync(stale) || existsSync(factsFile(stale))).toBe(false);
    await poll(() => it.started[0]?.controls.length).toBe(2);
    it.started[0]!.write({ type: "agent", agent: await facts(orphans[0]) }, frame(DATA, "x\n"));
    await poll(it.shown).toBe("x\n");
    it.started[0]!.kill();
    await orphans[0].ended;
  });
});

describe.skipIf(process.platform === "win32")("the place of supervisors", () => {
  /** A folder with the socket of a supervisor that is another process: `pid`. */
  async function placed(pid: number, first: Buffer | null, started: string | null) {
    const folder = mkdtempSync(join(tmpdir(), "hf-place-"));
    const socket = newSocket(folder, KEY);
    const controls: Any[] = [];
    const server = createServer((one) => {
      const reader = new FrameReader();
      one
        .on("error", () => undefined)
        .on("data", (chunk) => {
          for (const it of reader.push(chunk as Buffer)) if ("control" in it) controls.push(it.control);
          if (first) one.end(first);
        });
      one.on("end", () => one.end());
    });
    await once(server.listen(socket), "listening");
    writeFileSync(factsFile(socket), JSON.stringify({ pid, started, agent: null }));
    return {
      ...{ folder, socket, controls },
      [Symbol.dispose]: () => {
        server.close();
        rmSync(folder, { recursive: true });
      },
    };
  }

  test("a supervisor with an editor does not retire", async () => {
    using it = await placed(process.pid, controlFrame({ type: "busy" }), await startOf(process.pid));
    expect(await retire(it.folder, process.pid)).toBe(false);
    expect(it.controls).toEqual([{ type: "retire" }]);
  });

  test("one without an editor is asked to retire, and waited for", async () => {
    const child = spawn("/bin/sleep", ["600"]);
    using it = await placed(
      child.pid!,
      controlFrame({ type: "ended", code: 0, signal: null }),
      await startOf(child.pid!),
    );
    let isGone: boolean | null = null;
    const retiring = retire(it.folder, child.pid!).then((gone) => {
      isGone = gone;
    });
    await poll(() => it.controls).toEqual([{ type: "retire" }]);
    expect(isGone).toBeNull();
    child.kill("SIGKILL");
    await once(child, "exit");
    await retiring;
    expect(isGone).toBe(true);
  });

  test("one that has died is gone, and a process that is no supervisor is not asked", async () => {
    const child = spawn("/bin/true");
    await once(child, "exit");
    using it = await placed(child.pid!, null, "1");
    rmSync(it.socket);
    expect(await retire(it.folder, child.pid!)).toBe(true);
    expect(await retire(it.folder, process.pid)).toBe(false);
  });

  test("the socket of one that lives is not removed, one with the facts of another process is", async () => {
    using it = await placed(process.pid, null, await startOf(process.pid));
    await removeStale(it.socket);
    expect(socketsIn(it.folder)).toEqual([it.socket]);
    // Another process has its pid by now, or nobody knows when it began.
    for (const started of ["1", null]) {
      writeFileSync(factsFile(it.socket), JSON.stringify({ pid: process.pid, started, agent: null }));
      await removeStale(it.socket);
      expect([existsSync(it.socket), existsSync(factsFile(it.socket))]).toEqual([false, false]);
      writeFileSync(it.socket, "");
    }
  });

  test("what was left by one that was killed after it had closed its socket is found and ended", async () => {
    using it = await placed(process.pid, null, "1");
    const mark = "HOLDFAST_WRAPPED=of-a-supervisor-that-was-ending";
    // Its agent has been started, and nobody knows its pid yet.
    const child = spawn("/bin/sleep", ["600"], { env: { HOLDFAST_WRAPPED: mark.split("=")[1] } });
    const agent = { pid: 0, started: null, mark };
    writeFileSync(factsFile(it.socket), JSON.stringify({ pid: process.pid, started: "1", agent }));
    rmSync(it.socket);
    writeFileSync(join(it.folder, "another.sock.json"), "{}");
    expect([socketsIn(it.folder), leftIn(it.folder)]).toEqual([[], [it.socket]]);
    await removeStale(it.socket);
    expect(child.signalCode ?? (await once(child, "exit"))[1]).toBe("SIGTERM");
    expect(leftIn(it.folder)).toEqual([]);
  });

  test("an agent's pid that another process has by now is left alone", async () => {
    const child = spawn("/bin/sleep", ["600"]);
    for (const started of ["1", null]) await endOrphan({ pid: child.pid!, started, mark: "HOLDFAST_WRAPPED=none" });
    expect(await startOf(child.pid!)).not.toBeNull();
    await endOrphan({ pid: child.pid!, started: await startOf(child.pid!), mark: "HOLDFAST_WRAPPED=none" });
    expect(child.signalCode ?? (await once(child, "exit"))[1]).toBe("SIGTERM");
  });

  test("a name of any other form is no socket of ours", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hf-place-"));
    const servers: Server[] = [];
    for (const name of [`${KEY}-0123456.sock`, `x${KEY}-01234567.sock`, `${KEY}-01234567.socks`]) {
      servers.push(createServer().listen(join(folder, name)));
      await once(servers.at(-1)!, "listening");
    }
    expect(socketsIn(folder)).toEqual([]);
    for (const server of servers) server.close();
    rmSync(folder, { recursive: true });
  });
});
