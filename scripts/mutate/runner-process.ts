import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { join } from "node:path";
import type { FromRunner, RunnerOptions, TestEnd, TestSelection, ToRunner } from "./runner.ts";

export interface RunLimits {
  /** How long it may take until the next test ends. */
  readonly silenceMs: number;
  readonly totalMs: number;
}

export interface RunResult {
  readonly tests: readonly TestEnd[];
  readonly errors: readonly string[];
  /** It was killed because it took too long. */
  readonly timedOut: boolean;
}

const START_LIMITS: RunLimits = { silenceMs: 120_000, totalMs: 120_000 };

/**
 * A test runner in a process group of its own, so that it can be killed with the workers and programs that its tests
 * have started.
 */
export class RunnerProcess implements Disposable {
  readonly #child: ChildProcess;
  readonly #messages: FromRunner[] = [];
  #isGone = false;
  #wake: () => void = () => {};

  constructor(options: RunnerOptions) {
    const { scratch } = options;
    const { FORCE_COLOR: _, ...environment } = process.env;
    this.#child = fork(join(import.meta.dirname, "runner.ts"), [JSON.stringify(options)], {
      cwd: options.root,
      detached: true,
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      execArgv: [],
      // The same random tests each time: a mutant that was killed once is killed again.
      env: { ...environment, HOLDFAST_SEED: "1", TMPDIR: scratch, TEMP: scratch, TMP: scratch, CI: "1" },
    });
    this.#child.on("message", (message: FromRunner) => {
      this.#messages.push(message);
      this.#wake();
    });
    this.#child.on("error", () => this.#end());
    this.#child.on("exit", () => this.#end());
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** All test files of its layers. */
  async list(): Promise<readonly TestSelection[]> {
    this.#send({ kind: "list" });
    const start = performance.now();
    for (;;) {
      const message = await this.#next(start, START_LIMITS);
      if (message === null) throw new Error("vitest did not start: run `npx vitest list` to see why");
      if (message.kind === "listed") return message.tests;
    }
  }

  /** Runs tests after these files have changed. */
  async run(
    tests: readonly TestSelection[],
    changed: readonly string[],
    limits: RunLimits,
    onTest: (test: TestEnd) => void = () => {},
  ): Promise<RunResult> {
    this.#send({ kind: "run", changed, tests });
    const ended: TestEnd[] = [];
    const start = performance.now();
    for (;;) {
      const message = await this.#next(start, limits);
      if (message === null) {
        const timedOut = !this.#isGone;
        this[Symbol.dispose]();
        return { tests: ended, errors: timedOut ? [] : ["the test runner died"], timedOut };
      }
      if (message.kind === "done") return { tests: ended, errors: message.errors, timedOut: false };
      if (message.kind !== "test") continue;
      ended.push(message.test);
      onTest(message.test);
    }
  }

  [Symbol.dispose](): void {
    const { pid } = this.#child;
    if (pid !== undefined && !this.#isGone) killGroup(pid);
    this.#end();
  }

  #send(message: ToRunner): void {
    // A runner that has died is noticed by the lack of an answer.
    if (!this.#isGone) this.#child.send(message, () => {});
  }

  /** Null if it takes too long or if the process is gone. */
  async #next(start: number, limits: RunLimits): Promise<FromRunner | null> {
    const end = Math.min(performance.now() + limits.silenceMs, start + limits.totalMs);
    for (;;) {
      const message = this.#messages.shift();
      if (message) return message;
      const left = end - performance.now();
      if (this.#isGone || left <= 0) return null;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = setTimeout(resolve, left);
      await promise;
      clearTimeout(timer);
    }
  }

  #end(): void {
    this.#isGone = true;
    this.#wake();
  }
}

/** Kills a runner, its workers, and what its tests have started. */
export function killGroup(pid: number): void {
  try {
    // Windows has no process groups, but it knows who started whom.
    if (process.platform === "win32") execFileSync("taskkill", ["/pid", String(pid), "/t", "/f"], { stdio: "ignore" });
    else process.kill(-pid, "SIGKILL");
  } catch {
    // It has just ended by itself.
  }
}
