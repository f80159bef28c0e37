import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { bin } from "../command.ts";

const run = promisify(execFile);
const POLL_MS = 40;
/** Only what never comes takes this long. Shorter than the limit of a test, so that the error says what is missing. */
const WAIT_MS_MAX = 240_000;

/** Why no terminal can be driven here, or null. */
export const whyNoTerminal: string | null = spawnSync("tmux", ["-V"]).error ? "not run: tmux is missing" : null;

export interface TerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Started by hand in a shell with job control, and not by something that waits for its end. */
  readonly inShell?: boolean;
  /** The words that start the command, such as `npx holdfast`. Default: Node with its bundle. */
  readonly command?: readonly string[];
}

/** How the command ended, as its parent saw it. */
export interface WaitStatus {
  readonly code: number | null;
  readonly signal: string | null;
}

type Wanted = RegExp | string | ((screen: string) => boolean);

/**
 * The command in a real terminal: keys in, the screen's text out. One tmux server for each, so that none sees another.
 */
export class Terminal implements AsyncDisposable {
  readonly #socket: string;
  readonly #folder: string;

  private constructor(socket: string, folder: string) {
    this.#socket = socket;
    this.#folder = folder;
  }

  static async open(args: readonly string[], options: TerminalOptions): Promise<Terminal> {
    const { columns = 80, rows = 24, cwd, env = {} } = options;
    const folder = mkdtempSync(join(tmpdir(), "holdfast-screen-"));
    const terminal = new Terminal(join(folder, "socket"), folder);
    const parent = join(import.meta.dirname, "parent.ts");
    const compiled = join(import.meta.dirname, "../../../../node_modules/.cache/holdfast-command");
    const all = {
      NODE_COMPILE_CACHE: compiled,
      LC_ALL: "C.UTF-8",
      HISTFILE: "/dev/null",
      HOLDFAST_CONFIG: "",
      HOLDFAST_OFFLINE_DELAY_MS: "0",
      ...env,
    };
    const own = options.inShell ? [] : [parent, join(folder, "status")];
    const command = options.command ?? [process.execPath, ...own, bin];
    const words = [...command, ...args].map(quoted).join(" ");
    // The shell stays behind the command, so that what it leaves in the terminal can be seen.
    const shell = options.inShell ? `cd ${quoted(cwd)} && exec bash --norc` : `cd ${quoted(cwd)} && ${words}; exec sh`;
    await terminal.#tmux(
      ...["-f", join(import.meta.dirname, "tmux.conf"), "new-session", "-d", "-x", `${columns}`, "-y", `${rows}`],
      ...Object.entries(all).flatMap(([name, value]) => ["-e", `${name}=${value}`]),
      shell,
    );
    if (options.inShell) await terminal.say(`clear; ${words}`);
    return terminal;
  }

  /** By their names: `Enter`, `Escape`, `C-c`, `M-Enter`. */
  async keys(...names: string[]): Promise<void> {
    await this.#tmux("send-keys", ...names);
  }

  /** As if typed. */
  async type(text: string): Promise<void> {
    await this.#tmux("send-keys", "-l", text);
  }

  /** A prompt, or a command with a slash. */
  async say(text: string): Promise<void> {
    await this.type(text);
    await this.keys("Enter");
  }

  /** As a terminal pastes: in brackets, if the program has asked for them. */
  async paste(text: string): Promise<void> {
    await this.#tmux("set-buffer", text);
    await this.#tmux("paste-buffer", "-p");
  }

  /** What stands on the screen now, without the blank rows at its end. */
  async screen(): Promise<string> {
    return (await this.#tmux("capture-pane", "-p")).trimEnd();
  }

  /** The same with its colours, as escape sequences. */
  async styled(): Promise<string> {
    return (await this.#tmux("capture-pane", "-p", "-e")).trimEnd();
  }

  /** The same with all that has scrolled away. */
  async all(): Promise<string> {
    return (await this.#tmux("capture-pane", "-p", "-S", "-")).trimEnd();
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux("resize-window", "-x", `${columns}`, "-y", `${rows}`);
  }

  /**
   * The same while the program stands still, so that the terminal has nothing left to read that was drawn for the old
   * size: what it does with that, no program can know.
   */
  async resizeStopped(columns: number, rows: number): Promise<void> {
    await this.signal("SIGSTOP");
    try {
      for (let before = "", now = await this.all(); now !== before; now = await this.all()) {
        before = now;
        await pause(50);
      }
      await this.resize(columns, rows);
    } finally {
      await this.signal("SIGCONT");
    }
  }

  /** One of tmux's own facts, such as `cursor_flag`. */
  async fact(name: string): Promise<string> {
    return (await this.#tmux("display-message", "-p", `#{${name}}`)).trim();
  }

  /** Waits until the cursor stands in this column. */
  async untilCursorIn(column: number): Promise<void> {
    await this.#until([(found) => found === `${column}`], () => this.fact("cursor_x"));
  }

  /**
   * Waits until the screen shows all of this at once; answers the screen. For what stays there: the question, the
   * editor, the status line. Name everything that the test expects of it: a look can catch a frame that is half drawn.
   */
  until(...wanted: readonly Wanted[]): Promise<string> {
    return this.#until(wanted, () => this.screen());
  }

  /** The same, with what has scrolled away. For what the conversation shows: more may come before anybody looks. */
  untilAll(...wanted: readonly Wanted[]): Promise<string> {
    return this.#until(wanted, () => this.all());
  }

  async #until(wanted: readonly Wanted[], look: () => Promise<string>): Promise<string> {
    let screen = "";
    for (const end = Date.now() + WAIT_MS_MAX; Date.now() < end; await pause(POLL_MS)) {
      screen = await look();
      if (wanted.every((what) => shows(screen, what))) return screen;
    }
    const missing = wanted.filter((what) => !shows(screen, what));
    throw new Error(`The screen does not show ${missing.map(String).join(", nor ")}:\n${screen}`);
  }

  /** The process of the command itself. */
  async pid(): Promise<number> {
    const path = join(this.#folder, "status.pid");
    await untilTrue(() => existsSync(path), "the process of the command");
    return Number(readFileSync(path, "utf8"));
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    process.kill(await this.pid(), signal);
  }

  /** Closes the terminal, as a window is closed or a connection drops. */
  async hangUp(): Promise<void> {
    await this.#tmux("kill-session");
  }

  /** Waits for the end of the command. */
  async ended(): Promise<WaitStatus> {
    const path = join(this.#folder, "status");
    await untilTrue(
      () => existsSync(path),
      "the end of the command",
      async () => {
        return existsSync(this.#socket) ? await this.screen().catch(String) : "(the terminal is closed)";
      },
    );
    return JSON.parse(readFileSync(path, "utf8"));
  }

  /**
   * Everything that was started here is gone when it resolves: nobody writes into a folder that is about to be removed.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const own = join(this.#folder, "status.pid");
    const status = join(this.#folder, "status");
    if (existsSync(own) && !existsSync(status)) {
      killed(Number(readFileSync(own, "utf8")));
      await untilTrue(() => existsSync(status), "the end of the command");
    }
    // Not there any more after hangUp.
    await this.#tmux("kill-server").catch(() => undefined);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #tmux(...args: string[]): Promise<string> {
    return (await run("tmux", ["-S", this.#socket, "-u", ...args], { maxBuffer: 1 << 28 })).stdout;
  }
}

function shows(screen: string, what: Wanted): boolean {
  if (typeof what === "function") return what(screen);
  return typeof what === "string" ? screen.includes(what) : what.test(screen);
}

async function untilTrue(
  holds: () => boolean,
  what: string,
  seen: () => Promise<string> = () => Promise.resolve(""),
): Promise<void> {
  for (const end = Date.now() + WAIT_MS_MAX; Date.now() < end; await pause(POLL_MS)) if (holds()) return;
  throw new Error(`Waited in vain for ${what}. ${await seen()}`);
}

function killed(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
