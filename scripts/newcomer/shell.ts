import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const POLL_MS = 50;

export interface Answer {
  /** What appeared between the command and the next prompt. */
  readonly text: string;
  readonly exitCode: number;
}

export interface ShellOptions {
  /** All of its environment: nothing of the process that starts it. */
  readonly env: Readonly<Record<string, string>>;
  /** How long to wait for what should appear. */
  readonly patienceMs: number;
}

/** A shell in a real terminal, at which commands are typed one after another. */
export class Shell implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "holdfast-newcomer-"));
  readonly #patienceMs: number;
  readonly #env: Readonly<Record<string, string>>;
  #count = 0;

  private constructor({ patienceMs, env }: ShellOptions) {
    this.#patienceMs = patienceMs;
    this.#env = env;
  }

  static async open(options: ShellOptions & { readonly cwd: string }): Promise<Shell> {
    const shell = new Shell(options);
    const size = ["-x", "100", "-y", "40"];
    await shell.#tmux("-f", "/dev/null", "new-session", "-d", ...size, "-c", options.cwd, "bash --norc");
    await shell.#tmux("set-option", "history-limit", "20000");
    // The prompt says how many commands were typed, and how the last one ended.
    await shell.type("PS1='<\\#:$?> '; clear", "Enter");
    await shell.#prompt();
    return shell;
  }

  /** Types a command, and waits for the next prompt. */
  async enter(command: string): Promise<Answer> {
    return this.ended(await this.start(command));
  }

  /** Types a command. Answers the number of the prompt at which it was typed. */
  async start(command: string): Promise<number> {
    await this.type("clear", "Enter");
    const before = await this.#prompt();
    await this.#tmux("clear-history");
    await this.type(command, "Enter");
    return before;
  }

  /** Waits for the end of a command that was typed after the given prompt. */
  async ended(before: number): Promise<Answer> {
    const exitCode = await this.#promptAfter(before);
    const [, ...lines] = (await this.seen()).split("\n");
    return { text: lines.slice(0, -1).join("\n"), exitCode };
  }

  /** Types a text, then keys by their names (`Enter`, `C-d`). */
  async type(text: string, ...keys: readonly string[]): Promise<void> {
    await this.#tmux("send-keys", "-l", text);
    if (keys.length > 0) await this.#tmux("send-keys", ...keys);
  }

  /** Waits until the terminal shows this. */
  async until(wanted: RegExp): Promise<void> {
    await this.#until(`${wanted}`, (seen) => (wanted.test(seen) ? true : null));
  }

  /** Everything in the terminal, what has scrolled away included. */
  async seen(): Promise<string> {
    return (await this.#tmux("capture-pane", "-p", "-J", "-S", "-")).trimEnd();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux("kill-server").catch(() => undefined);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The number of the prompt that waits now. */
  async #prompt(): Promise<number> {
    const more = (seen: string): number | null => {
      const found = /<(\d+):\d+>$/.exec(seen)?.[1];
      return found !== undefined && Number(found) > this.#count ? Number(found) : null;
    };
    this.#count = await this.#until("a prompt", more);
    return this.#count;
  }

  async #promptAfter(before: number): Promise<number> {
    const [, count, code] = await this.#until("the next prompt", (seen) => {
      const found = /<(\d+):(\d+)>$/.exec(seen);
      return found && Number(found[1]) > before ? found : null;
    });
    // Otherwise this prompt would be taken for the one that follows the next command.
    this.#count = Number(count);
    return Number(code);
  }

  async #until<T>(what: string, look: (seen: string) => T | null): Promise<T> {
    for (const end = Date.now() + this.#patienceMs; ; await pause(POLL_MS)) {
      const seen = await this.seen();
      const found = look(seen);
      if (found !== null) return found;
      if (Date.now() > end) throw new Error(`Waited in vain for ${what}. The terminal shows:\n${seen}`);
    }
  }

  async #tmux(...args: readonly string[]): Promise<string> {
    const all = ["-S", join(this.#folder, "socket"), "-u", ...args];
    return (await run("tmux", all, { maxBuffer: 1 << 26, env: this.#env })).stdout;
  }
}
