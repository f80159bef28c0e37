import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Exit codes by which a shell says that it could not start a command. */
const NOT_STARTED = new Set([126, 127]);
const CHUNK_CHARACTERS = 64 * 1024;

export interface PagerOptions {
  /** A shell command; null: print directly. */
  readonly command: string | null;
  readonly stdout: NodeJS.WriteStream;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * The pager to use: the configured one, else PAGER, else `less` or `more` where there is one. Null if there is none, or
 * if the user chose none (`cat`).
 */
export function pagerCommand(
  configured: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  platform: string = process.platform,
): string | null {
  const chosen = configured ?? env["PAGER"]?.trim();
  if (chosen !== undefined && chosen !== "") return chosen === "cat" ? null : chosen;
  // The one that Windows has garbles Unicode.
  if (chosen === "" || platform === "win32") return null;
  return ["less", "more"].find((name) => isInPath(name, env["PATH"] ?? "")) ?? null;
}

function isInPath(name: string, path: string): boolean {
  return path.split(delimiter).some((folder) => folder.startsWith("/") && isProgram(join(folder, name)));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch (error) {
    if (error instanceof Error && "syscall" in error) return false;
    throw error;
  }
}

/**
 * Shows lines in a pager, or prints them if they fit on the screen. The user may quit early: the rest is then not
 * made. `make` is called again if the pager cannot be started: then everything is printed.
 */
export async function page(make: () => Iterable<string>, { command, stdout, env }: PagerOptions): Promise<void> {
  const rows = stdout.rows || 24;
  if (command === null || fits(make(), rows)) return print(make(), stdout);
  // Colours, quit if it fits on one screen, leave the text there: as Git does.
  const defaults = { LESS: "FRX", LV: "-c" };
  const child = spawn(command, {
    shell: true,
    stdio: ["pipe", "inherit", "inherit"],
    env: { ...defaults, ...env } as NodeJS.ProcessEnv,
  });
  // The pager decides what Ctrl+C means.
  const ignore = (): void => {};
  process.on("SIGINT", ignore);
  const ended = once(child, "close");
  // It has quit, or never started: its exit code says which.
  child.stdin.on("error", ignore);
  child.on("error", ignore);
  try {
    await feed(make(), child.stdin);
    const [code] = (await ended.catch(() => [127])) as [number | null];
    if (code === null || !NOT_STARTED.has(code)) return;
  } finally {
    process.off("SIGINT", ignore);
  }
  process.stderr.write(`holdfast: The pager could not be started: ${command}\n`);
  await print(make(), stdout);
}

function fits(lines: Iterable<string>, rows: number): boolean {
  let count = 0;
  // The shell's prompt needs a row too.
  for (const _line of lines) if (++count >= rows) return false;
  return true;
}

async function feed(lines: Iterable<string>, stream: NodeJS.WritableStream & { destroyed?: boolean }): Promise<void> {
  for (const chunk of chunksOf(lines)) {
    if (stream.destroyed || !stream.writable) return;
    if (!stream.write(chunk)) await drained(stream);
  }
  stream.end();
}

async function print(lines: Iterable<string>, stdout: NodeJS.WriteStream): Promise<void> {
  for (const chunk of chunksOf(lines)) if (!stdout.write(chunk)) await drained(stdout);
}

/** Also if nobody reads any more. */
async function drained(stream: NodeJS.WritableStream): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      for (const event of ["drain", "close", "error"]) stream.off(event, done);
      resolve();
    };
    for (const event of ["drain", "close", "error"]) stream.on(event, done);
  });
}

function* chunksOf(lines: Iterable<string>): Generator<string, void, undefined> {
  let chunk = "";
  for (const line of lines) {
    chunk += `${line}\n`;
    if (chunk.length < CHUNK_CHARACTERS) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}
