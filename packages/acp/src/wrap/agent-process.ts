import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

/** How an agent ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The agent's process, in a session of its own: an editor that kills our process group does not kill it with us. */
export class AgentProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ended: Promise<Ended>) {
    this.#child = child;
    this.stdin = child.stdin!;
    this.stdout = child.stdout!;
    this.ended = ended;
    // It closed its input; its end says the rest.
    this.stdin.on("error", () => undefined);
  }

  /** Throws if the command cannot be started. */
  static async start([command = "", ...args]: readonly string[]): Promise<AgentProcess> {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], detached: process.platform !== "win32" });
    const ended = new Promise<Ended>((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
    await once(child, "spawn");
    return new AgentProcess(child, ended);
  }

  /** Closes its input, and ends it and what it started if it does not end by itself. */
  async end(graceMs: number): Promise<Ended> {
    this.stdin.end();
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      if (await this.#endsWithin(graceMs)) break;
      this.#kill(signal);
    }
    return this.ended;
  }

  async #endsWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const passed = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), ms);
    });
    const isOver = await Promise.race([this.ended.then(() => true), passed]);
    clearTimeout(timer);
    return isOver;
  }

  #kill(signal: NodeJS.Signals): void {
    try {
      // The whole group: tools that the agent started must not outlive it.
      if (this.#child.pid !== undefined && process.platform !== "win32") process.kill(-this.#child.pid, signal);
      else this.#child.kill(signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}
