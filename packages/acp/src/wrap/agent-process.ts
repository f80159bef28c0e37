import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { ProcessFamily } from "./process-family.ts";

/** How an agent ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** How long an agent has for each step of its end: its turn, its sessions, itself. */
export const STEP_MS = 1_500;
/** Each wrapped agent, and everything that it starts, has this variable with a value of its own. */
const MARK = "HOLDFAST_WRAPPED";
/** How long what an agent leaves behind may take to end by itself. */
const LEFT_MS = 500;

/** The agent's process, in a session of its own: an editor that kills our process group does not kill it with us. */
export class AgentProcess {
  readonly stdin: Writable;
  readonly stdout: Socket;
  /** The agent has ended, and so has everything that it started. */
  readonly ended: Promise<Ended>;
  readonly pid: number;
  /** The variable that finds its processes. */
  readonly mark: string;
  /** It has ended; what it started may not have. */
  hasExited = false;
  readonly #family: ProcessFamily;

  private constructor(child: ChildProcess, mark: string) {
    this.pid = child.pid!;
    this.mark = mark;
    this.#family = new ProcessFamily(this.pid, mark);
    this.#family.watch();
    this.stdin = child.stdin!;
    this.stdout = child.stdout as Socket;
    // It closed its input: either it is ending, or it is of no use to anybody.
    this.stdin.on("error", () => void this.end(STEP_MS));
    this.ended = new Promise<Ended>((resolve) =>
      child.once("exit", (code, signal) => {
        this.hasExited = true;
        // It may go on spending tokens, or changing files.
        void this.#family.end(LEFT_MS).then(() => {
          resolve({ code, signal });
          this.#closeOutput();
        });
      }),
    );
  }

  /**
   * `stderr`: takes what the agent logs. Without it, the agent has ours. `onMark`: called before it is
   * started, with what finds its processes. Throws if the command cannot be started.
   */
  static async start(
    [command = "", ...args]: readonly string[],
    stderr?: (stream: Readable) => void,
    onMark?: (mark: string) => void,
  ): Promise<AgentProcess> {
    const id = randomUUID();
    onMark?.(`${MARK}=${id}`);
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", stderr ? "pipe" : "inherit"],
      detached: process.platform !== "win32",
      windowsHide: true,
      env: { ...process.env, [MARK]: id },
    });
    await once(child, "spawn");
    if (stderr) stderr(child.stderr!);
    return new AgentProcess(child, `${MARK}=${id}`);
  }

  /** Closes its input, and ends it and what it started if it does not end by itself. */
  async end(graceMs: number): Promise<Ended> {
    // Once the agent is gone, its processes can no longer be told by their parent.
    await this.#family.members();
    this.stdin.end();
    if (!(await this.#endsWithin(graceMs))) await this.#family.end(graceMs);
    return this.ended;
  }

  /** Something that was not found may keep the output open: nobody waits for its end. What is unread is read first. */
  #closeOutput(): void {
    let before = -1;
    const timer = setInterval(() => {
      const { bytesRead, readableLength, closed } = this.stdout;
      if (readableLength === 0 && bytesRead === before) this.stdout.destroy();
      if (this.stdout.destroyed || closed) clearInterval(timer);
      before = bytesRead;
    }, LEFT_MS).unref();
  }

  async #endsWithin(ms: number): Promise<boolean> {
    const timer = new AbortController();
    const late = passed(ms, false, { signal: timer.signal }).catch(() => false);
    const isOver = await Promise.race([this.ended.then(() => true), late]);
    timer.abort();
    return isOver;
  }
}
