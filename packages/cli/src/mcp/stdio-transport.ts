import { Buffer } from "node:buffer";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Duplex, Readable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ReadBuffer, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { ToolProcess } from "holdfast";
import { plainLine } from "../terminal/plain.ts";
import { identify, keepTrack, stopGroup } from "../tools/shell/process-groups.ts";
import { type Hide, hideInMessage } from "./hide-secrets.ts";

export interface ServerProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Takes the server's keys out of what it prints. */
  readonly hide: Hide;
}

/** A connection to a server, and why it ended. */
export interface ServerTransport extends Transport {
  /** Why the server ended, if that was not our doing; null otherwise. */
  readonly why: string | null;
  /** The last line that it printed for people; empty if there is none. */
  readonly said: string;
}

/**
 * Runs the server ($@) beside a watcher that holds fd 3. When the agent closes that, or dies in any way, the watcher
 * gives the server a second to end by itself (its standard input has ended too), then ends its whole process group. The
 * watcher is a member of the group, so its number cannot belong to anyone else.
 */
const WATCHED = `
( { read -r _; sleep 1; trap '' TERM; kill -TERM 0; sleep 1; kill -KILL 0; } <&3 >/dev/null 2>&1 & )
exec "$@" 3<&-
`;

/** One message; a list of ten thousand tools fits. */
const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;
/** What a server may send without being asked. */
const UNASKED_BYTES_MAX = 64 * 1024 * 1024;
/** Some servers print a greeting. One that sends nothing else is not a server. */
const GARBAGE_LINES_MAX = 100;
const STDERR_BYTES = 2048;
/** How long a server gets to end after its standard input has ended. */
const ENDING_MS = 1000;

export function stdioTransport(program: ServerProgram): ServerTransport {
  return process.platform === "win32" ? windowsTransport(program) : new StdioTransport(program);
}

/** A server in a process group of its own, so that it can be ended as a whole and Ctrl+C does not reach it. */
class StdioTransport implements ServerTransport {
  onmessage?: (message: JSONRPCMessage) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #program: ServerProgram;
  readonly #read = new ReadBuffer({ maxBufferSize: MESSAGE_BYTES_MAX });
  #child: ChildProcess | null = null;
  #gate: Duplex | null = null;
  #process: ToolProcess | null = null;
  #exit: Promise<unknown> = Promise.resolve();
  #garbage = 0;
  #unasked = 0;
  #stderr: Buffer = Buffer.alloc(0);
  #why: string | null = null;
  #isEnding = false;
  #isSignalled = false;
  #isClosed = false;

  constructor(program: ServerProgram) {
    this.#program = program;
  }

  get why(): string | null {
    return this.#why;
  }

  get said(): string {
    return lastLine(this.#stderr, this.#program.hide);
  }

  async start(): Promise<void> {
    const { command, args, cwd, env } = this.#program;
    const child = spawn("sh", ["-c", WATCHED, "holdfast", command, ...args], {
      cwd,
      env,
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
    });
    this.#child = child;
    this.#gate = child.stdio[3] as Duplex;
    this.#gate.on("error", () => this.#gate?.destroy());
    this.#exit = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        // It may have ended by itself while we were about to end it.
        const isOurs = this.#isSignalled || (this.#isEnding && code === 0);
        const how = code === null ? `it was killed by ${signal}` : `it ended with exit status ${code}`;
        if (!isOurs) this.#why ??= how;
        // The watcher ends what the server left behind.
        this.#gate?.destroy();
        resolve(null);
      });
      child.on("error", resolve);
    });
    child.once("close", () => this.#closed());
    for (const stream of [child.stdin, child.stdout, child.stderr])
      stream?.on("error", (error) => this.onerror?.(error));
    child.stdout?.on("data", (chunk: Buffer) => this.#receive(chunk));
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = Buffer.concat([this.#stderr, chunk.subarray(-STDERR_BYTES)]).subarray(-STDERR_BYTES);
    });
    await once(child, "spawn");
    const pid = child.pid!;
    const started = await identify(pid);
    // It has ended already: its exit says so.
    if (started === null) return;
    this.#process = { pid, started, group: true };
    const tracked = keepTrack(this.#process);
    void this.#exit.then(() => tracked.forget());
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      const stdin = this.#child?.stdin;
      if (!stdin?.writable) reject(new Error("the server is gone"));
      else stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    this.#isEnding = true;
    this.#child?.stdin?.end();
    const waiting = new AbortController();
    const patience = passed(ENDING_MS, false, { signal: waiting.signal }).catch(() => true);
    const isOver = await Promise.race([this.#exit.then(() => true), patience]);
    waiting.abort();
    if (!isOver && this.#process) {
      this.#isSignalled = true;
      await stopGroup(this.#process);
    }
    this.#gate?.destroy();
    // A process that it left behind may hold its output open.
    this.#child?.stdout?.destroy();
    this.#child?.stderr?.destroy();
    this.#closed();
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#unasked += chunk.length;
    try {
      this.#read.append(chunk);
    } catch {
      this.#breakOff(`it sent a message of more than ${MESSAGE_BYTES_MAX / 1024 / 1024} MiB`);
      return;
    }
    for (;;) {
      let message: JSONRPCMessage | null;
      try {
        message = this.#read.readMessage();
      } catch (error) {
        this.#garbage += 1;
        if (this.#garbage > GARBAGE_LINES_MAX) {
          this.#breakOff("it does not speak the MCP protocol");
          return;
        }
        this.onerror?.(error as Error);
        continue;
      }
      if (message === null) break;
      this.#garbage = 0;
      if (!("method" in message)) this.#unasked = 0;
      this.onmessage?.(message);
    }
    if (this.#unasked > UNASKED_BYTES_MAX)
      this.#breakOff(`it sent more than ${UNASKED_BYTES_MAX / 1024 / 1024} MiB without being asked`);
  }

  #breakOff(why: string): void {
    this.#why ??= why;
    this.#child?.stdout?.destroy();
    this.close().catch((error: Error) => this.onerror?.(error));
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#read.clear();
    this.onclose?.();
  }
}

/** Windows has neither `sh` nor process groups: the SDK starts the server and ends it. */
function windowsTransport({ command, args, cwd, env, hide }: ServerProgram): ServerTransport {
  const given = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  const transport = new StdioClientTransport({
    ...{ command, args: [...args], cwd, env: Object.fromEntries(given), stderr: "pipe" },
    maxBufferSize: MESSAGE_BYTES_MAX,
  });
  let stderr: Buffer = Buffer.alloc(0);
  (transport.stderr as Readable | null)?.on("data", (chunk: Buffer) => {
    stderr = Buffer.concat([stderr, chunk.subarray(-STDERR_BYTES)]).subarray(-STDERR_BYTES);
  });
  return Object.defineProperties(transport as unknown as ServerTransport, {
    why: { value: null },
    said: { get: () => lastLine(stderr, hide) },
  });
}

const LINE_CHARS_MAX = 200;

/**
 * The last line that says anything, harmless on any terminal. Keys are hidden before anything is cut; the word in which
 * the bytes begin may be the end of one.
 */
function lastLine(bytes: Buffer, hide: Hide): string {
  const text = bytes.toString("utf8");
  const whole = bytes.length < STDERR_BYTES ? text : text.replace(/^\S+/u, "");
  const lines = hideInMessage(hide, whole).split("\n").map(plainLine);
  return (lines.findLast((line) => line !== "") ?? "").slice(0, LINE_CHARS_MAX).toWellFormed();
}
