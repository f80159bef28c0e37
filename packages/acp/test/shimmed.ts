import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { type Control, controlFrame, DATA, FrameReader, headerOf } from "../src/layout/frames.ts";
import { agentKey, newSocket } from "../src/layout/place.ts";
import { Shim, type ShimEnd } from "../src/layout/shim.ts";

export interface Shimmed {
  /** What the editor says. */
  readonly input: PassThrough;
  /** What the editor was sent. */
  readonly shown: () => string;
  readonly logged: () => string;
  /** What the supervisor was sent. */
  readonly received: () => string;
  readonly over: Promise<ShimEnd>;
  /** Bytes of the supervisor for the editor. */
  readonly say: (bytes: string) => void;
  readonly control: (control: Control) => void;
  /** The supervisor is gone without a word. */
  readonly kill: () => void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A shim, and a supervisor that the test speaks for. It ends when the editor leaves. */
export async function shimmed(): Promise<Shimmed> {
  const folder = mkdtempSync(join(tmpdir(), "hf-shim-"));
  const key = agentKey(["agent"], "/store");
  const greeted = Promise.withResolvers<Socket>();
  const sockets = new Set<Socket>();
  let received = "";
  const server = createServer((socket) => {
    const reader = new FrameReader();
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      for (const frame of reader.push(chunk as Buffer)) {
        if ("bytes" in frame) received += String(frame.bytes);
        else if (frame.control.type === "leave") socket.end(controlFrame({ type: "ended", code: 0, signal: null }));
        else if (frame.control.type === "hello") {
          socket.write(controlFrame({ type: "welcome", client: 1 }));
          greeted.resolve(socket);
        }
      }
    });
  });
  await once(server.listen(newSocket(folder, key)), "listening");
  const [input, output, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  let shown = "";
  let logged = "";
  output.on("data", (chunk) => {
    shown += String(chunk);
  });
  stderr.on("data", (chunk) => {
    logged += String(chunk);
  });
  const supervisor = (): string[] => ["/nonexistent"];
  const over = new Shim({ folder, key, supervisor, logFile: null, input, output, stderr }).run();
  over.catch(() => undefined);
  const link = await greeted.promise;
  return {
    ...{ input, over, shown: () => shown, logged: () => logged, received: () => received },
    say: (bytes) => void link.write(Buffer.concat([headerOf(DATA, Buffer.byteLength(bytes)), Buffer.from(bytes)])),
    control: (control) => void link.write(controlFrame(control)),
    kill: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      input.end();
      server.close();
      for (const socket of sockets) socket.destroy();
      await over.catch(() => undefined);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
