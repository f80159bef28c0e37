import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { INTERNAL, type Line, lineOf, type Params, type RequestId, stringOf } from "../record/message.ts";
import { LineReader } from "../wrap/lines.ts";
import { inPlaceOf, type LongLine, longLineWords, refusalOf } from "../wrap/long-line.ts";
import { Outlet } from "../wrap/outlet.ts";
import {
  type AgentFacts,
  type Control,
  controlFrame,
  DATA,
  FRAMES_VERSION,
  type Frame,
  FrameOutlet,
  FrameReader,
  type Hello,
  STDERR,
} from "./frames.ts";
import { OpenedSessions } from "./opened-sessions.ts";
import { connected, endOrphan, leftIn, newSocket, removeStale, socketsIn } from "./place.ts";
import { ShownState } from "./shown-state.ts";

export interface ShimOptions {
  /** A folder for sockets that only this user can open. */
  readonly folder: string;
  readonly key: string;
  /** The command line of a supervisor that listens on this socket. */
  readonly supervisor: (socket: string) => readonly string[];
  /** The file for what supervisors log; null: nowhere. */
  readonly logFile: number | null;
  readonly input: Readable;
  readonly output: Writable;
  readonly stderr: Writable;
  /** Before an agent starts, what earlier ones have left is ended. Default: meanwhile. */
  readonly startsClean?: boolean;
}

/** How the shim ends. */
export type ShimEnd = Extract<Control, { type: "ended" | "failed" }> | { readonly type: "lost"; readonly why: string };

/** The way to the supervisor. */
interface Link {
  readonly path: string;
  readonly out: FrameOutlet;
  readonly socket: Socket;
  readonly life: Socket | null;
}

/** A supervisor that died this often in a row, each time within a minute, will die the next time too. */
const RESTARTS_MAX = 3;
const ROW_MS = 60_000;
const PROMPT = "session/prompt";
/** How long a supervisor may take to answer. */
const WELCOME_MS = 5_000;

/** Between the editor and the supervisor: passes bytes, and answers for a supervisor that has died. */
export class Shim {
  readonly #options: ShimOptions;
  readonly #output: Outlet;
  readonly #stderr: Outlet;
  /** The editor's requests without an answer, and the sessions of its prompts. */
  readonly #open = new Map<string, { readonly id: RequestId; readonly prompted: string | null }>();
  readonly #shown = new ShownState();
  readonly #over = Promise.withResolvers<ShimEnd>();
  #initialize: Params | null = null;
  /** For the next supervisor, should this one die. */
  readonly #opened = new OpenedSessions();
  #agent: AgentFacts | null = null;
  #link: Link | null = null;
  /** What a supervisor that died has left is being ended. */
  #cleaning: Promise<void> = Promise.resolve();
  #restarts = 0;
  #restartedAt = Number.NEGATIVE_INFINITY;
  #hasLeft = false;
  /** The editor has the beginning of a line. */
  #isInLine = false;
  /** For the editor, after that line. */
  readonly #refusals: Buffer[] = [];

  constructor(options: ShimOptions) {
    this.#options = options;
    this.#output = new Outlet(options.output);
    this.#stderr = new Outlet(options.stderr);
  }

  async run(): Promise<ShimEnd> {
    await this.#attach();
    void this.#readEditor().catch((error: unknown) => this.#over.reject(error));
    return this.#over.promise;
  }

  /** Takes over an agent that waits for an editor, or starts a supervisor. */
  async #attach(): Promise<void> {
    const { folder, key } = this.#options;
    for (const socket of socketsIn(folder, key))
      if (await this.#join(socket, { type: "hello", version: FRAMES_VERSION })) return;
    const cleaned = this.#removeOthers();
    if (this.#options.startsClean) await cleaned;
    await this.#startSupervisor({ type: "hello", version: FRAMES_VERSION });
  }

  async #removeOthers(): Promise<void> {
    for (const socket of leftIn(this.#options.folder)) {
      const connection = await connected(socket);
      if (connection) connection.destroy();
      else await removeStale(socket);
    }
  }

  async #startSupervisor(hello: Hello): Promise<void> {
    const { folder, key, supervisor, logFile } = this.#options;
    const socket = newSocket(folder, key);
    await startApart(supervisor(socket), logFile);
    if (!(await this.#join(socket, hello))) throw new Error("the supervisor of the agent ended while it started");
  }

  async #join(path: string, hello: Hello): Promise<boolean> {
    const socket = await connected(path);
    if (!socket) {
      await removeStale(path);
      return false;
    }
    socket.on("error", () => undefined);
    const out = new FrameOutlet(socket);
    await out.control(hello);
    // One that was stopped accepts connections, and says nothing.
    const patience = setTimeout(() => socket.destroy(), WELCOME_MS);
    const reader = new FrameReader();
    const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const first = await chunks.next().catch(() => ({ done: true, value: undefined }) as const);
    clearTimeout(patience);
    const frames = first.done ? [] : [...reader.push(first.value)];
    const [welcome, ...rest] = frames;
    if (!welcome || !("control" in welcome) || welcome.control.type !== "welcome") {
      socket.destroy();
      return false;
    }
    const life = await connected(path);
    life
      ?.on("error", () => undefined)
      .resume()
      .write(controlFrame({ type: "life", client: welcome.control.client }));
    const link = { path, out, socket, life };
    this.#link = link;
    void this.#readSupervisor(link, chunks, reader, rest);
    return true;
  }

  // The editor

  async #readEditor(): Promise<void> {
    const lines = new LineReader();
    for await (const chunk of this.#options.input as AsyncIterable<Buffer>) {
      const whole: Line[] = [];
      for (const line of lines.push(chunk)) {
        const passed = "raw" in line ? line : await this.#refuse(line);
        if (passed) whole.push(passed);
      }
      for (const line of whole) this.#note(line);
      if (!this.#link) await this.#restart();
      for (const { raw } of whole) await this.#link?.out.data(raw);
    }
    const rest = lines.end();
    if (rest) await this.#link?.out.data(rest.raw);
    this.#hasLeft = true;
    if (this.#link) await this.#link.out.control({ type: "leave" });
    else this.#over.resolve({ type: "lost", why: "it was killed" });
  }

  /** Tells the editor that its message is too long. If it is an answer, the agent gets an error in its place. */
  async #refuse(long: LongLine): Promise<Line | null> {
    await this.#log(longLineWords("editor", long));
    if (long.kind === "response") return inPlaceOf(long);
    // Between the lines of the agent.
    if (this.#isInLine) this.#refusals.push(refusalOf(long));
    else await this.#output.write(refusalOf(long));
    return null;
  }

  #note(message: Line): void {
    if (message.kind === "response") this.#shown.answered(message.id);
    if (message.kind !== "request") return;
    const { id, method, params } = message;
    if (method === "initialize") this.#initialize = params;
    this.#open.set(JSON.stringify(id), { id, prompted: method === PROMPT ? stringOf(params["sessionId"]) : null });
  }

  /** The supervisor has died, and the editor goes on. */
  async #restart(): Promise<void> {
    // Two agents at work on one session would undo each other's work.
    await this.#cleaning;
    const now = performance.now();
    this.#restarts = now - this.#restartedAt > ROW_MS ? 1 : this.#restarts + 1;
    this.#restartedAt = now;
    if (this.#restarts > RESTARTS_MAX)
      return this.#over.resolve({ type: "lost", why: `it died ${this.#restarts} times` });
    // An editor that has not said what it can do will say so now.
    const continues =
      this.#initialize === null ? {} : { continues: { initialize: this.#initialize, opened: this.#opened.all } };
    await this.#startSupervisor({ type: "hello", version: FRAMES_VERSION, ...continues });
    await this.#log("the supervisor was started again");
  }

  // The supervisor

  async #readSupervisor(
    { path, socket, life }: Link,
    chunks: AsyncIterator<Buffer>,
    reader: FrameReader,
    rest: readonly Frame[],
  ): Promise<void> {
    let end: ShimEnd | null = null;
    try {
      for (const frame of rest) end = (await this.#frame(frame)) ?? end;
      for (let next = await chunks.next(); !next.done; next = await chunks.next())
        for (const frame of reader.push(next.value)) end = (await this.#frame(frame)) ?? end;
    } catch {
      // It was killed.
    }
    life?.destroy();
    socket.destroy();
    this.#link = null;
    const unanswered = [...this.#open.values()].map(({ id }) => id);
    this.#open.clear();
    if (end) return this.#over.resolve(end);
    await this.#lost(path, unanswered);
    if (this.#hasLeft && !this.#link) this.#over.resolve({ type: "lost", why: "it was killed" });
  }

  async #frame(frame: Frame): Promise<ShimEnd | null> {
    if ("control" in frame) {
      const { control } = frame;
      if (control.type === "answered") this.#answered(control.id);
      else if (control.type === "shown") this.#shown.apply(control.change);
      else if (control.type === "agent") this.#agent = control.agent;
      else if (control.type === "opened") this.#opened.set(control.session, control.params, control.chosen);
      else if (control.type === "ended" || control.type === "failed") return control;
    } else if (frame.kind === DATA) {
      this.#isInLine = frame.bytes.at(-1) !== 0x0a;
      const refusals = this.#isInLine ? [] : this.#refusals.splice(0);
      await this.#output.write(frame.bytes, ...refusals);
    } else if (frame.kind === STDERR) await this.#stderr.write(frame.bytes);
    return null;
  }

  #answered(id: RequestId): void {
    const key = JSON.stringify(id);
    const prompted = this.#open.get(key)?.prompted ?? null;
    this.#open.delete(key);
    if (prompted !== null) this.#shown.leave(prompted);
  }

  /** The supervisor was killed: the editor is told, and the agent is not left behind. */
  async #lost(path: string, unanswered: readonly RequestId[]): Promise<void> {
    const lineEnd = this.#isInLine ? [Buffer.from("\n")] : [];
    this.#isInLine = false;
    const agent = this.#agent;
    this.#agent = null;
    // The file knows of an agent that this process has not been told of.
    this.#cleaning = (agent ? endOrphan(agent) : Promise.resolve()).then(() => removeStale(path));
    await this.#output.write(...lineEnd, ...this.#refusals.splice(0));
    await this.#log("the supervisor of the agent has died. What was said so far is recorded");
    const message =
      "The process that records this agent has died. What was said so far is recorded. Send the next prompt to start it again.";
    // What was open is closed before the prompt that it belongs to is answered.
    for (const line of this.#shown.takeEnd()) await this.#output.write(line);
    for (const id of unanswered)
      await this.#output.write(lineOf({ id, error: { code: INTERNAL, message, data: { interrupted: true } } }));
    await this.#cleaning;
  }

  #log(line: string): Promise<void> {
    return this.#stderr.write(Buffer.from(`holdfast: ${line}\n`));
  }
}

/**
 * Starts a process that is nobody's child and has a session of its own: an editor that kills all its descendants does
 * not find it. Resolves when the process says that it is ready.
 */
async function startApart(command: readonly string[], logFile: number | null): Promise<void> {
  const stdio = ["ignore", "ignore", logFile ?? "ignore", "pipe"] as const;
  const [program = "", ...args] = command;
  const apart = { detached: true, windowsHide: true, stdio: [...stdio] };
  const ignore = (): undefined => undefined;
  // The shell ends at once, so its child becomes the system's.
  const shell = process.platform === "win32" ? null : spawn("/bin/sh", ["-c", '"$@" &', "sh", ...command], apart);
  shell?.on("error", ignore);
  const child: ChildProcess = shell?.pid === undefined ? spawn(program, args, apart).on("error", ignore) : shell;
  child.unref();
  const ready = child.stdio[3] as Readable;
  let said = "";
  try {
    for await (const chunk of ready.setEncoding("utf8") as AsyncIterable<string>) {
      said += chunk;
      if (said.endsWith("\n")) break;
    }
  } catch {
    // It ended before it was ready.
  }
  ready.destroy();
  if (said !== "ready\n") throw new Error(said === "" ? "the supervisor could not be started" : said.trim());
}
