import { type ChildProcess, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import type { ChatEvent } from "../host/host.ts";

/** An agent that is silent for this long is stuck. Generous, for busy machines. */
const SILENCE_MS = 60_000;
const STDERR_CHARACTERS_MAX = 10_000;

export interface ChildOptions {
  /** The arguments of `holdfast`, starting with `run`. */
  readonly args: readonly string[];
  readonly store: string;
  readonly cwd: string;
  readonly delayMs: number;
}

export interface Death {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Runs this same command in a process of its own: `holdfast run --json …`. */
export class Child {
  /** Resolves when the process is dead and all of its output has been read. */
  readonly died: Promise<Death>;
  readonly #process: ChildProcess;
  #stderr = "";

  constructor({ args, store, cwd, delayMs }: ChildOptions, onEvent: (event: ChatEvent) => void) {
    const entry = process.argv[1]!;
    this.#process = spawn(process.execPath, [...process.execArgv, entry, "--store", store, ...args], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...foreign(process.env, store), HOLDFAST_CONFIG: "", HOLDFAST_OFFLINE_DELAY_MS: String(delayMs) },
    });
    const silence = setTimeout(() => this.kill(), SILENCE_MS);
    let rest = "";
    this.#process.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
      silence.refresh();
      const lines = (rest + chunk).split("\n");
      // A line without an end was being written when the process died: nothing was acknowledged.
      rest = lines.pop()!;
      for (const line of lines) if (line !== "") onEvent(JSON.parse(line) as ChatEvent);
    });
    this.#process.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARACTERS_MAX);
    });
    this.died = new Promise((resolve, reject) => {
      this.#process.once("error", reject);
      // `close`, not `exit`: the pipe may still hold output.
      this.#process.once("close", (code, signal) => {
        clearTimeout(silence);
        resolve({ code, signal });
      });
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }
  get stderr(): string {
    return this.#stderr;
  }

  /** The process cannot notice or prevent this. */
  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

/** Isolates the demo from the user's configuration, and keeps the agent from saving state in the user's own folder. */
function foreign(env: NodeJS.ProcessEnv, store: string): NodeJS.ProcessEnv {
  const others = Object.entries(env).filter(([name]) => !name.startsWith("HOLDFAST_"));
  const state = process.platform === "win32" ? "LOCALAPPDATA" : "XDG_STATE_HOME";
  return { ...Object.fromEntries(others), [state]: join(dirname(store), "state") };
}
