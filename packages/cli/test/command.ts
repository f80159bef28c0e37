import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The command as it is installed (`build.ts` sees to it that it is there). */
export const bin = join(import.meta.dirname, "../bundle/bin.js");

/** What Node compiled of it, for all tests: a home of its own would begin with nothing. */
const compiled = join(import.meta.dirname, "../../../node_modules/.cache/holdfast-command");

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** For its standard input, which ends after it. Default: nothing. */
  readonly input?: string;
  readonly cwd?: string;
  readonly uid?: number;
  /** It leads a process group of its own, as under an editor. */
  readonly detached?: boolean;
  /** Another copy of the command than this repository's. */
  readonly command?: string;
}

/** Runs the command to its end. Its environment is what is given here, and nothing of the test's own but the PATH. */
export async function holdfast(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = startHoldfast(args, options);
  child.stdin.on("error", () => undefined).end(options.input ?? "");
  return ended(child);
}

/** Starts it, and leaves the rest to the test. */
export function startHoldfast(args: readonly string[], options: RunOptions = {}): ChildProcessWithoutNullStreams {
  const { env = {}, cwd, uid, command = bin, detached = false } = options;
  return spawn(process.execPath, [command, ...args], {
    detached,
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: compiled,
      HOLDFAST_CONFIG: "",
      HOLDFAST_OFFLINE_DELAY_MS: "0",
      ...env,
    },
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
}

/** All that it says until it ends. */
export async function ended(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** A user's home with a store in it, removed at the end of the scope. */
export interface Home extends Disposable {
  readonly path: string;
  /** The folder store; it need not exist yet. */
  readonly store: string;
  /** An empty folder to work in. */
  readonly work: string;
  readonly env: Readonly<Record<string, string>>;
  run(args: readonly string[], options?: RunOptions): Promise<Ended>;
  start(args: readonly string[], options?: RunOptions): ChildProcessWithoutNullStreams;
}

export function temporaryHome(): Home {
  const path = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  const store = join(path, "store");
  const work = join(path, "work");
  mkdirSync(work);
  const env = { HOME: path, XDG_STATE_HOME: join(path, "state"), HOLDFAST_STORE: store };
  const merged = (options: RunOptions): RunOptions => ({ cwd: work, ...options, env: { ...env, ...options.env } });
  return {
    path,
    store,
    work,
    env,
    run: (args, options = {}) => holdfast(args, merged(options)),
    start: (args, options = {}) => startHoldfast(args, merged(options)),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
