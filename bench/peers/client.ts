import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Answers, Request } from "./protocol.ts";

/** A worker, as its parent sees it. */
export class WorkerClient {
  readonly #child: ChildProcess;
  #errors = "";

  constructor(options: {
    readonly key: string;
    readonly cache: string;
    readonly folder: string;
    readonly home: string;
  }) {
    const { key, cache, folder, home } = options;
    this.#child = fork(join(import.meta.dirname, "worker.ts"), [key, cache, folder], {
      // The peers get nothing of the user's: no credentials, no settings, an empty home folder.
      env: { PATH: process.env["PATH"], HOME: home, NODE_COMPILE_CACHE: join(home, "compiled") },
      execArgv: ["--conditions=holdfast-source", "--expose-gc", "--no-warnings", "--max-old-space-size=8192"],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-2000);
    });
  }

  /** Throws what the worker threw, or that it died, or that it took too long. */
  async ask<R extends Request>(request: R, timeoutMs: number): Promise<Answers[R["task"]]> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), timeoutMs);
    try {
      this.#child.send(request);
      const { signal } = abort;
      const [reply] = (await Promise.race([
        once(this.#child, "message", { signal }),
        once(this.#child, "exit", { signal }).then(() => [{ error: this.#lastWords() }]),
      ])) as [{ answer?: Answers[R["task"]]; error?: string }];
      if (reply.answer) return reply.answer;
      throw new Error(reply.error);
    } catch (error) {
      if (abort.signal.aborted && (error as Error).name === "AbortError") throw new TooSlow(timeoutMs);
      throw error;
    } finally {
      clearTimeout(timer);
      abort.abort();
    }
  }

  /** What it still has open is left to the kernel: closing is not part of any figure. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }

  #lastWords(): string {
    const line = this.#errors.split("\n").find((line) => line.includes("Error")) ?? this.#errors.trim().split("\n")[0];
    return `its process ended${line ? `: ${line.trim()}` : ""}`;
  }
}

export class TooSlow extends Error {
  constructor(afterMs: number) {
    super(`stopped after ${Math.round(afterMs / 1000)} s`);
  }
}
