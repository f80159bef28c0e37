import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import {
  type Control,
  controlFrame,
  DATA,
  FRAMES_VERSION,
  FrameReader,
  headerOf,
  STDERR,
} from "../src/layout/frames.ts";
import { agentKey, newSocket } from "../src/layout/place.ts";
import { Supervisor, type SupervisorOptions } from "../src/layout/supervisor.ts";
import type { Ended } from "../src/wrap/agent-process.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

export const frame = (kind: number, bytes: string): Buffer =>
  Buffer.concat([headerOf(kind, Buffer.byteLength(bytes)), Buffer.from(bytes)]);

/** A connection to a supervisor, as a shim makes it. */
export interface RawShim {
  readonly socket: Socket;
  readonly controls: Control[];
  /** The messages for the editor. */
  readonly lines: Any[];
  readonly logged: () => string;
  isClosed(): boolean;
  send(message: object): void;
  ask(method: string, params?: object): Promise<Any>;
  /** The first control frame of this type. */
  control(type: Control["type"]): Promise<Any>;
}

export interface Supervised {
  readonly supervisor: Supervisor;
  readonly socket: string;
  readonly folder: string;
  readonly logged: string[];
  readonly over: Promise<Ended>;
  isOver(): boolean;
  /** `first`: the bytes that it begins with. */
  connect(first?: Buffer): RawShim;
  [Symbol.asyncDispose](): Promise<void>;
}

export const hello = (more: object = {}): Buffer =>
  controlFrame({ type: "hello", version: FRAMES_VERSION, ...more } as Control);

/** A supervisor in this process. */
export async function supervised(wrap: SupervisorOptions["wrap"], graceMs = 0): Promise<Supervised> {
  const folder = mkdtempSync(join(tmpdir(), "hf-sup-"));
  const socket = newSocket(folder, agentKey(["agent"], "/store"));
  const logged: string[] = [];
  const ready = Promise.withResolvers<void>();
  const supervisor = new Supervisor({
    ...{ socket, graceMs, wrap, log: (line) => void logged.push(line), onReady: ready.resolve },
  });
  let isOver = false;
  const over = supervisor.run().finally(() => {
    isOver = true;
  });
  over.catch(ready.reject);
  await ready.promise;
  const shims: RawShim[] = [];
  return {
    ...{ supervisor, socket, folder, logged, over, isOver: () => isOver },
    connect: (first = hello()) => {
      const shim = rawShim(socket, first);
      shims.push(shim);
      return shim;
    },
    [Symbol.asyncDispose]: async () => {
      for (const shim of shims) shim.socket.destroy();
      await supervisor.stop("the test is over");
      await over;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function rawShim(path: string, first: Buffer): RawShim {
  const socket = connect(path);
  const controls: Control[] = [];
  const reader = new FrameReader();
  let text = "";
  let logged = "";
  let isClosed = false;
  socket
    .on("error", () => undefined)
    .on("close", () => {
      isClosed = true;
    });
  socket.on("data", (chunk) => {
    for (const one of reader.push(chunk as Buffer)) {
      if ("control" in one) controls.push(one.control);
      else if (one.kind === STDERR) logged += String(one.bytes);
      else text += String(one.bytes);
    }
  });
  socket.write(first);
  let serial = 0;
  const send = (message: object): void =>
    void socket.write(frame(DATA, `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`));
  const shim: RawShim = {
    ...{ socket, controls, logged: () => logged, isClosed: () => isClosed, send },
    get lines() {
      return text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line));
    },
    ask: async (method, params = {}) => {
      const id = `q${++serial}`;
      send({ id, method, params });
      const answer = () => shim.lines.find((one) => one.id === id && one.method === undefined);
      await expect.poll(answer, { interval: 5 }).toBeDefined();
      return answer();
    },
    control: async (type) => {
      const found = () => controls.find((one) => one.type === type);
      await expect.poll(found, { interval: 5 }).toBeDefined();
      return found();
    },
  };
  return shim;
}
