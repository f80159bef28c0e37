import { type ChildProcess, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import type { ChatEvent } from "../host/host.ts";

/** An agent that says nothing for so long is stuck: generous, for machines that do many things at once. */
const SILENCE_MS = 60_000;
const STDERR_CHARACTERS_MAX = 10_000;

export interface ChildOptions {
  /** Of `holdfast`, from `run` on. */
  readonly args: readonly string[];
  readonly store: string;
  readonly cwd: string;
  readonly delayMs: number;
}

export interface Death {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** This very command once more, in a process of its own: `holdfast run --json …`. */
export class Child {
  /** When it is dead, and everything that it said has been heard. */
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
      // A line that has no end was being written when it died: nobody was told it.
      rest = lines.pop()!;
      for (const line of lines) if (line !== "") onEvent(JSON.parse(line) as ChatEvent);
    });
    this.#process.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARACTERS_MAX);
    });
    this.died = new Promise((resolve, reject) => {
      this.#process.once("error", reject);
      // `close` and not `exit`: the pipe may still hold what was said before death.
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

  /** Nothing in it gets to hear of this. */
  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

/**
 * The user's own configuration is not the demo's, nor does the agent remember anything of it in the user's own place.
 */
function foreign(env: NodeJS.ProcessEnv, store: string): NodeJS.ProcessEnv {
  const others = Object.entries(env).filter(([name]) => !name.startsWith("HOLDFAST_"));
  const state = process.platform === "win32" ? "LOCALAPPDATA" : "XDG_STATE_HOME";
  return { ...Object.fromEntries(others), [state]: join(dirname(store), "state") };
}
