import { chmodSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import type { Readable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { wordsOf } from "../record/words-of.ts";
import type { Ended } from "../wrap/agent-process.ts";
import type { Client } from "../wrap/client.ts";
import { startOf } from "../wrap/process-family.ts";
import type { WrapOptions, WrappedAgent } from "../wrap/wrapped-agent.ts";
import {
  type AgentFacts,
  CONTROL,
  type Control,
  DATA,
  FRAMES_VERSION,
  FrameOutlet,
  FrameReader,
  type Hello,
  OPENED_CHARS_MAX,
  STDERR,
} from "./frames.ts";
import { factsFile, type SupervisorFacts } from "./place.ts";

export interface SupervisorOptions {
  /** The path of the socket, in a folder that only this user can open. */
  readonly socket: string;
  readonly wrap: (hooks: Pick<WrapOptions, "log" | "stderr" | "onMark" | "onStarted" | "onOpened">) => WrappedAgent;
  /** How long the agent waits for an editor to come back. */
  readonly graceMs: number;
  readonly log: (line: string) => void;
  /** The socket accepts connections. */
  readonly onReady: () => void;
}

/** A shim whose editor is attached, or has just left. */
interface Attached {
  readonly client: Client;
  readonly socket: Socket;
  readonly out: FrameOutlet;
  /** `left`: the editor closed its side, and the shim waits for the end of the agent. `lost`: the shim was killed. */
  state: "here" | "left" | "lost";
}

const LOOK_MS = 20;
/** A shim connects at once after it started its supervisor. */
const FIRST_MS = 10_000;
/** How long a connection may take to say what it wants. */
const HELLO_MS = 5_000;
/** How long a shim that was told the end may take to read it. */
const PART_MS = 5_000;

/** Owns the agent and the journal, and outlives the editor for a while. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #server: Server;
  readonly #wrapped: WrappedAgent;
  #attached: Attached | null = null;
  #clients = 0;
  #hasStarted = false;
  #isEnding = false;
  /** When this process was started, as the system says; null until that is known. */
  #startedAt: string | null = null;
  readonly #over = Promise.withResolvers<Ended>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#server = createServer((socket) => void this.#connected(socket));
    this.#wrapped = options.wrap({
      stderr: (stream) => void this.#passStderr(stream),
      // Nothing that it starts may be left behind, even if this process is killed before it knows the agent's pid.
      onMark: (mark) => this.#keepFacts({ pid: 0, started: null, mark }),
      onStarted: () => void this.#writeFacts(),
      onOpened: async (session, params, chosen) => {
        // What does not fit is missing after a death of this process, and the person is told so.
        const fits = JSON.stringify([params, chosen]).length <= OPENED_CHARS_MAX;
        await this.#attached?.out.control({ type: "opened", session, params: fits ? params : null, chosen });
      },
      log: (line) => {
        options.log(line);
        void this.#attached?.out.data(Buffer.from(`holdfast: ${line}\n`), STDERR);
      },
    });
  }

  /** Resolves when the agent has ended and nothing of it is left. */
  async run(): Promise<Ended> {
    const { socket, log, onReady } = this.#options;
    await this.#listen(socket);
    await this.#writeFacts();
    onReady();
    log("started");
    const first = setTimeout(() => {
      if (this.#clients === 0) this.#over.resolve({ code: 1, signal: null });
    }, FIRST_MS);
    try {
      return await this.#over.promise;
    } finally {
      clearTimeout(first);
      this.#server.close();
      for (const path of [socket, factsFile(socket)]) rmSync(path, { force: true });
      log("ended");
    }
  }

  /** Ends the agent without waiting for anybody. */
  async stop(why: string): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#options.log(why);
    this.#server.close();
    const ended = await this.#wrapped.end().catch((error: unknown): Ended => {
      // The agent has ended, and this process may not stay for a journal that cannot be written.
      this.#options.log(`not everything could be recorded: ${wordsOf(error)}`);
      return { code: 1, signal: null };
    });
    await this.#part({ type: "ended", ...ended });
    this.#over.resolve(ended);
  }

  /**
   * Tells the shim the end, and waits until it has closed its side. If this process were gone while the shim still
   * sends, the shim would have an error in place of what it has not read yet.
   */
  async #part(end: Extract<Control, { type: "ended" | "failed" }>): Promise<void> {
    if (!this.#attached) return;
    const { out, socket } = this.#attached;
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    // Not awaited: a shim that does not read keeps no process for longer than this.
    void out.control(end);
    socket.end();
    if (!socket.destroyed) await Promise.race([closed, passed(PART_MS, undefined, { ref: false })]);
  }

  async #listen(path: string): Promise<void> {
    const before = process.umask(0o177);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once("error", reject).listen(path, resolve);
      });
    } finally {
      process.umask(before);
    }
    if (process.platform !== "win32") chmodSync(path, 0o600);
  }

  /** So that the next shim can end what a supervisor that was killed has left. */
  async #writeFacts(): Promise<void> {
    if (process.platform === "win32") return;
    this.#startedAt ??= await startOf(process.pid);
    const { agent } = this.#wrapped;
    // Not the rest of it: its streams hold what is being said.
    const facts = agent && { pid: agent.pid, started: await startOf(agent.pid), mark: agent.mark };
    // Another one has been started meanwhile.
    if (facts?.mark !== this.#wrapped.agent?.mark) return;
    this.#keepFacts(facts);
    if (facts) await this.#attached?.out.control({ type: "agent", agent: facts });
  }

  #keepFacts(agent: AgentFacts | null): void {
    if (process.platform === "win32") return;
    const facts: SupervisorFacts = { pid: process.pid, started: this.#startedAt, agent };
    const file = factsFile(this.#options.socket);
    writeFileSync(`${file}.new`, JSON.stringify(facts), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }

  /** The editor's log has what the agent logs, as without us. Without an editor it is dropped. */
  async #passStderr(stream: Readable): Promise<void> {
    stream.on("error", () => undefined);
    for await (const chunk of stream) await this.#attached?.out.data(chunk as Buffer, STDERR);
  }

  async #connected(socket: Socket): Promise<void> {
    socket.on("error", () => undefined);
    const reader = new FrameReader();
    const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const patience = setTimeout(() => socket.destroy(), HELLO_MS);
    try {
      const { hello, rest } = await helloOf(chunks, reader);
      clearTimeout(patience);
      if (hello === null) return void socket.destroy();
      if (hello.type === "retire") return await this.#retire(socket);
      if (hello.type === "life") return await this.#watch(chunks, hello.client);
      await this.#greet(socket, hello, { chunks, reader, rest });
    } catch (error) {
      // It does not speak our protocol, or it broke off: not worth ending anything for.
      this.#options.log(`a connection ended: ${wordsOf(error)}`);
      socket.destroy();
    } finally {
      clearTimeout(patience);
    }
  }

  async #greet(socket: Socket, hello: Extract<Hello, { type: "hello" }>, from: Greeting): Promise<void> {
    const out = new FrameOutlet(socket);
    if (hello.version !== FRAMES_VERSION) {
      await out.control({ type: "refused", version: FRAMES_VERSION });
      return void socket.end();
    }
    if (this.#isEnding || this.#attached?.state === "here") {
      await out.control({ type: "busy" });
      return void socket.end();
    }
    // The one that left need not wait for an agent that goes on.
    await this.#attached?.out.control({ type: "ended", code: 0, signal: null });
    this.#attached?.socket.end();
    this.#clients += 1;
    const client = this.#wrapped.attach({
      write: (line, answers, change) => {
        if (answers !== undefined) return out.dataWith(line, { type: "answered", id: answers });
        return change ? out.dataWith(line, { type: "shown", change }) : out.data(line);
      },
    });
    const attached: Attached = { client, socket, out, state: "here" };
    this.#attached = attached;
    this.#options.log(this.#clients === 1 ? "an editor is attached" : "an editor is attached again");
    await out.control({ type: "welcome", client: this.#clients });
    const isStarted = this.#hasStarted || (await this.#begin(hello, from.chunks));
    if (!isStarted) return;
    if (this.#clients > 1) await this.#writeFacts();
    try {
      await this.#wrapped.read(client, this.#dataOf(attached, from));
    } finally {
      await this.#gone(attached);
    }
  }

  /** Starts the agent, or leaves that to the next message if this continues for a supervisor that died. */
  async #begin({ continues }: Extract<Hello, { type: "hello" }>, chunks: AsyncIterator<Buffer>): Promise<boolean> {
    const wrapped = this.#wrapped;
    this.#hasStarted = true;
    if (continues) {
      wrapped.continueFrom(continues.initialize, continues.opened);
      return true;
    }
    try {
      const { early } = await wrapped.start();
      void early.then(async (ended) => {
        if (ended === null) return;
        await this.#part({ type: "ended", ...ended });
        this.#over.resolve(ended);
      });
      return true;
    } catch (error) {
      const { code = null, syscall = null, message } = error as NodeJS.ErrnoException;
      this.#options.log(`the agent could not be started: ${message}`);
      void readToEnd(chunks);
      await this.#part({ type: "failed", code, syscall, message });
      this.#over.resolve({ code: 1, signal: null });
      return false;
    }
  }

  async *#dataOf(attached: Attached, { chunks, reader, rest }: Greeting): AsyncGenerator<Buffer, void, undefined> {
    yield* rest;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
      for (const frame of reader.push(next.value)) {
        if (frame.kind === DATA && "bytes" in frame) yield frame.bytes;
        if ("control" in frame && frame.control.type === "leave") {
          attached.state = "left";
          return;
        }
      }
    }
  }

  /** A connection that lives as long as its shim. */
  async #watch(chunks: AsyncIterator<Buffer>, client: number): Promise<void> {
    const attached = this.#attached;
    await readToEnd(chunks);
    if (attached?.state !== "here" || client !== this.#clients) return;
    attached.socket.destroy();
    await this.#gone(attached);
  }

  /** Refuses what the agent asks, waits for an editor, and then ends the agent. */
  async #gone(attached: Attached): Promise<void> {
    if (attached.state === "lost") return;
    if (attached.state === "here") attached.state = "lost";
    const { graceMs, log } = this.#options;
    const wrapped = this.#wrapped;
    log(attached.state === "left" ? "the editor has left" : "the editor is gone");
    const until = performance.now() + graceMs;
    const isOwed = (): boolean => attached.state === "left" && wrapped.owes(attached.client);
    while (isOwed() && performance.now() < until) await passed(LOOK_MS);
    await wrapped.detach(attached.client);
    const isDone = (): boolean => attached.state === "left" && !wrapped.isBusy;
    const isAlone = (): boolean => this.#attached === attached && !this.#isEnding;
    while (isAlone() && performance.now() < until && !isDone()) await passed(LOOK_MS);
    if (isAlone()) return this.stop("no editor came back: ending the agent");
    // Another editor has taken over. What it does not look at is not left to itself.
    await passed(Math.max(0, until - performance.now()), undefined, { ref: false });
    if (!this.#isEnding) await wrapped.cancelUnheard();
  }

  async #retire(socket: Socket): Promise<void> {
    const out = new FrameOutlet(socket);
    if (this.#attached?.state === "here") await out.control({ type: "busy" });
    else await this.stop("another editor needs the session");
    socket.end();
  }
}

interface Greeting {
  readonly chunks: AsyncIterator<Buffer>;
  readonly reader: FrameReader;
  /** Data that came together with the greeting. */
  readonly rest: readonly Buffer[];
}

async function readToEnd(chunks: AsyncIterator<Buffer>): Promise<void> {
  try {
    for (let next = await chunks.next(); !next.done; next = await chunks.next());
  } catch {
    // The shim was killed.
  }
}

/** The first frame says what the connection is for. */
async function helloOf(
  chunks: AsyncIterator<Buffer>,
  reader: FrameReader,
): Promise<{ readonly hello: Hello | null; readonly rest: readonly Buffer[] }> {
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    const [first, ...more] = [...reader.push(next.value)];
    if (!first) continue;
    const hello = first.kind === CONTROL && "control" in first ? helloIn(first.control) : null;
    return { hello, rest: more.flatMap((one) => ("bytes" in one && one.kind === DATA ? [one.bytes] : [])) };
  }
  return { hello: null, rest: [] };
}

function helloIn(control: Control): Hello | null {
  return control.type === "hello" || control.type === "life" || control.type === "retire" ? control : null;
}
