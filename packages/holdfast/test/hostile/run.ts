import { spawn } from "node:child_process";
import { join } from "node:path";

/** What a process said, and how it ended. */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** It said nothing for so long that it was killed. */
  readonly hung: boolean;
}

/** Whoever says nothing for this long hangs. Far more than anything here takes on a busy machine. */
const SILENCE_MS = 90_000;
/** Enough for any session that a writer makes, and far too little for what hostile ones would take. */
const HEAP_MB = 640;

/**
 * Runs a program of this repository with little memory, as another user if this one is root, and kills it when it
 * hangs.
 */
export function runLimited(
  program: string,
  args: readonly string[],
  options: { readonly user?: number; readonly env?: Record<string, string>; readonly cwd?: string } = {},
): Promise<Outcome> {
  const flags = [
    "--conditions=holdfast-source",
    "--disable-warning=ExperimentalWarning",
    `--max-old-space-size=${HEAP_MB}`,
  ];
  const child = spawn(process.execPath, [...flags, program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.user === undefined ? {} : { uid: options.user, gid: options.user }),
  });
  let stdout = "";
  let stderr = "";
  let hung = false;
  const kill = (): void => {
    hung = true;
    child.kill("SIGKILL");
  };
  let timer = setTimeout(kill, SILENCE_MS);
  const heard = (): void => {
    clearTimeout(timer);
    timer = setTimeout(kill, SILENCE_MS);
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    heard();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-20_000);
    heard();
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ stdout, stderr, code, signal, hung });
    });
  });
}

export const WORKER: string = join(import.meta.dirname, "worker.ts");
