import { type ChildProcess, spawn } from "node:child_process";
import { extname } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { type LabEvent, Lines, REPORTS_FD } from "./pipe.ts";

/** A process that is silent for longer than this is stuck: generous, for busy machines. */
const SILENCE_MS = 30_000;
const STDERR_CHARS_MAX = 20_000;

export interface SpawnOptions {
  /**
   * The command that runs a program (`["bun"]`, `["deno", "run", "-A"]`). Default: this runtime, which also gets what
   * it needs to run a program from its source.
   */
  readonly runtime?: readonly string[];
  /** Runs it under a shell that first does this (`ulimit -f 64`). */
  readonly shell?: string;
  readonly uid?: number;
  readonly gid?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Death {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process under test: its events, in order, and a way to kill it. */
export class Victim<E extends { readonly e: string } = LabEvent> implements AsyncDisposable {
  readonly events: E[] = [];
  readonly #child: ChildProcess;
  readonly #listeners = new Set<(event: E) => void>();
  /** Resolves when it is dead and all its events have been read. */
  readonly died: Promise<Death>;
  #dead: Death | undefined;
  #stderr = "";

  /** Starts `program` (a path) with one argument, which it finds as JSON in `process.argv[2]`. */
  constructor(program: string, argument: unknown, options: SpawnOptions = {}) {
    const own = [process.execPath, ...(extname(program) === ".ts" ? ["--conditions=holdfast-source"] : [])];
    const command = [...(options.runtime ?? own), program, JSON.stringify(argument)];
    const [file, ...args] = options.shell
      ? ["/bin/sh", "-c", `${options.shell}; exec "$@"`, "sh", ...command]
      : command;
    this.#child = spawn(file!, args, {
      stdio: options.runtime ? "pipe" : ["pipe", "ignore", "pipe", "pipe"],
      env: { ...process.env, ...(options.runtime ? { [REPORTS_FD]: "1" } : {}), ...options.env },
      ...(options.uid === undefined ? {} : { uid: options.uid }),
      ...(options.gid === undefined ? {} : { gid: options.gid }),
    });
    this.died = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      // `close` and not `exit`: the pipe may still hold events from before its death.
      this.#child.once("close", (code, signal) => {
        this.#dead = { code, signal };
        resolve(this.#dead);
      });
    });
    this.#child.stdin?.on("error", () => {
      // EPIPE: it died before it could be told something. `died` reports that.
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARS_MAX);
    });
    const lines = new Lines<E>();
    (this.#child.stdio[options.runtime ? 1 : 3] as Readable).setEncoding("utf8").on("data", (chunk: string) => {
      for (const event of lines.take(chunk)) {
        this.events.push(event);
        for (const listener of [...this.#listeners]) listener(event);
      }
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }
  get stderr(): string {
    return this.#stderr;
  }
  get dead(): boolean {
    return this.#dead !== undefined;
  }

  kill(signal: NodeJS.Signals = "SIGKILL"): void {
    this.#child.kill(signal);
  }

  /** Calls back in the same turn of the event loop in which the event arrives. Returns a function that stops this. */
  onEvent(listener: (event: E) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Sends one line of JSON to its standard input. */
  say(command: unknown): void {
    (this.#child.stdin as Writable).write(`${JSON.stringify(command)}\n`);
  }

  /** Ends its standard input. */
  hush(): void {
    this.#child.stdin?.end();
  }

  /** The first event of one of these kinds, starting at `from`. Rejects if it dies or falls silent before. */
  async until<K extends E["e"]>(
    kind: K | readonly K[],
    fits: (event: Extract<E, { e: K }>) => boolean = () => true,
    from = 0,
  ): Promise<Extract<E, { e: K }>> {
    const kinds: readonly string[] = typeof kind === "string" ? [kind] : kind;
    const wanted = (event: E): event is Extract<E, { e: K }> =>
      kinds.includes(event.e) && fits(event as Extract<E, { e: K }>);
    const heard = this.events.slice(from).find(wanted);
    if (heard) return heard;
    const { promise, resolve, reject } = Promise.withResolvers<Extract<E, { e: K }>>();
    const stop = this.onEvent((event) => {
      if (wanted(event)) resolve(event);
    });
    const what = kinds.join(" or ");
    const silence = setTimeout(() => reject(this.#complaint(`reported no ${what} in ${SILENCE_MS} ms`)), SILENCE_MS);
    this.died.then(() => reject(this.#complaint(`died before it reported ${what}`)), reject);
    try {
      return await promise;
    } finally {
      clearTimeout(silence);
      stop();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // SIGKILL also ends a stopped process.
    this.kill();
    await this.died;
  }

  #complaint(what: string): Error {
    const failed = this.events.findLast((event) => event.e === "failed") as { readonly message?: string } | undefined;
    const words = failed?.message ?? (this.#stderr || "(nothing on stderr)");
    return new Error(`process ${this.pid} ${what}: ${words}`);
  }
}

/** A program beside `module`, in source or built. */
export function programBeside(module: string, name: string): string {
  return fileURLToPath(new URL(`./${name}${extname(fileURLToPath(module))}`, module));
}

/** Busy-waits for this many microseconds: timers are too coarse to hit the middle of a write. */
export function spin(us: number): void {
  const until = process.hrtime.bigint() + BigInt(Math.round(us * 1000));
  while (process.hrtime.bigint() < until);
}
