import { spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";

/** How a command ended that the person ran with `!`. */
export interface CommandEnd {
  /** What it printed, both streams together; the middle is missing if it was long. */
  readonly output: string;
  /** `exit code 1`, `SIGTERM`; null if it succeeded. */
  readonly failure: string | null;
}

const CHARACTERS_MAX = 64 * 1024;
/** A command that ignores SIGTERM is killed after this long. */
const KILL_MS = 3_000;

/** `!npm test` without its exclamation mark; null if the text is no such line. */
export function userCommandIn(text: string): string | null {
  const found = /^!([^\n]+)$/u.exec(text.trim());
  return found?.[1]?.trim() || null;
}

/**
 * Runs a command that the person typed, with the person's own rights and environment: no rule is asked, because nobody
 * else decides. It gets no input. `signal` ends it, and everything that it started.
 */
export async function runUserCommand(
  command: string,
  options: { readonly cwd: string; readonly signal: AbortSignal; readonly onOutput: (text: string) => void },
): Promise<CommandEnd> {
  const isWindows = process.platform === "win32";
  const child = spawn(command, {
    cwd: options.cwd,
    shell: true,
    stdio: ["ignore", "pipe", "pipe"],
    detached: !isWindows,
  });
  const kept = new Ends();
  for (const stream of [child.stdout, child.stderr]) {
    const decoder = new StringDecoder("utf8");
    const take = (text: string): void => {
      if (text === "") return;
      kept.add(text);
      options.onOutput(text);
    };
    stream.on("data", (bytes: Buffer) => take(decoder.write(bytes)));
    stream.once("end", () => take(decoder.end()));
  }
  const kill = (signal: NodeJS.Signals): void => {
    try {
      if (isWindows || child.pid === undefined) child.kill(signal);
      else process.kill(-child.pid, signal);
    } catch {
      // It has ended.
    }
  };
  let killLater: NodeJS.Timeout | null = null;
  const stop = (): void => {
    kill("SIGTERM");
    killLater = setTimeout(() => kill("SIGKILL"), KILL_MS);
  };
  options.signal.addEventListener("abort", stop, { once: true });
  if (options.signal.aborted) stop();
  try {
    return await new Promise<CommandEnd>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => {
        const failure = code === 0 ? null : (signal ?? `exit code ${code}`);
        resolve({ output: kept.text, failure });
      });
    });
  } finally {
    options.signal.removeEventListener("abort", stop);
    if (killLater) clearTimeout(killLater);
  }
}

/** The beginning and the end of a text that may be very long. */
class Ends {
  #start = "";
  #end = "";
  #left = 0;

  add(text: string): void {
    const room = CHARACTERS_MAX / 2 - this.#start.length;
    if (room > 0) this.#start += text.slice(0, room);
    this.#end += text.slice(Math.max(0, room));
    const over = this.#end.length - CHARACTERS_MAX / 2;
    if (over <= 0) return;
    this.#left += over;
    this.#end = this.#end.slice(over);
  }

  /** Well-formed: a cut may have split a character. */
  get text(): string {
    const middle = this.#left === 0 ? "" : `\n… ${this.#left} characters left out …\n`;
    return (this.#start + middle + this.#end).toWellFormed();
  }
}
