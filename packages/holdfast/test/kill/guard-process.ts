import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Job, Said } from "./guard-agent.ts";

export interface Death {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The command that starts an agent. */
export function agentCommand(job: Job): [file: string, ...args: string[]] {
  const program = fileURLToPath(new URL("./guard-agent.ts", import.meta.url));
  return [process.execPath, "--conditions=holdfast-source", program, JSON.stringify(job)];
}

/** What an agent has said, line by line; a line that it did not finish is not counted. */
export function saidIn(text: string): Said[] {
  const lines = text.split("\n").slice(0, -1);
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Said);
}

/** A real process: what it says, how it ends, and the means to end it. */
export class Process implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #hearing = new Set<() => void>();
  readonly died: Promise<Death>;
  #dead = false;
  #stdout = "";
  stderr = "";

  constructor(file: string, ...args: string[]) {
    this.#child = spawn(file, args, { stdio: "pipe" });
    this.#child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
      for (const hear of this.#hearing) hear();
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.died = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      // `close` and not `exit`: the pipe may still hold what was said before death.
      this.#child.once("close", (code, signal) => {
        this.#dead = true;
        resolve({ code, signal });
        for (const hear of this.#hearing) hear();
      });
    });
  }

  get said(): Said[] {
    return saidIn(this.#stdout);
  }
  get stdout(): string {
    return this.#stdout;
  }

  /** Waits until it has said this. Rejects if it ends without. */
  async until(what: Said["say"]): Promise<void> {
    const heard = (): boolean => this.said.some(({ say }) => say === what);
    while (!heard()) {
      if (this.#dead)
        throw new Error(`it ended and never said "${what}"\n${this.stderr}\n${this.#stdout.slice(-2_000)}`);
      await new Promise<void>((resolve) => {
        const hear = (): void => {
          this.#hearing.delete(hear);
          resolve();
        };
        this.#hearing.add(hear);
      });
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
  tell(line: string): void {
    this.#child.stdin!.write(`${line}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#dead) this.#child.kill("SIGKILL");
    await this.died;
  }
}
