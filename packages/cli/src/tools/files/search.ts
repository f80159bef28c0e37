import { stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { assertNotOwn } from "../paths/own-store.ts";
import { realPath, shownPath } from "../paths/real-path.ts";
import { isSecret } from "../paths/secret-files.ts";
import { describeSystemError } from "../results/system-errors.ts";
import type { FileContext } from "./context.ts";
import type { SearchReport, SearchTask } from "./search-worker.ts";
import { type FolderListing, notes, oneLine, walk } from "./walk.ts";

const FILES_MAX = 50_000;
const TIMEOUT_SECONDS = 20;
/** How long the thread may take to start. */
const STARTING_SECONDS = 60;
const TERMINATION_MS = 1000;

interface SearchInput {
  readonly pattern: string;
  readonly path?: string | undefined;
}

export async function search(
  { cwd, own, passOver = isSecret }: Pick<FileContext, "cwd" | "own" | "passOver">,
  input: SearchInput,
  signal?: AbortSignal,
  timeoutSeconds: number = TIMEOUT_SECONDS,
): Promise<string> {
  const root = realPath(cwd, input.path ?? ".");
  const shown = shownPath(cwd, root);
  assertPattern(input.pattern);
  assertNotOwn(own, root, shown);
  try {
    const found = await stat(root);
    // A worker that waits for the other end of a pipe could not even be terminated.
    if (!found.isDirectory() && !found.isFile())
      throw new Error(`${shown} is not a regular file but a device, pipe or socket. It was not searched.`);
    const walked = found.isDirectory() ? await walk(root, FILES_MAX, { passOver, own, signal }) : alone(root);
    const files = walked.entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
    const names = files.map((path) => oneLine(shownPath(cwd, path)));
    const task = { pattern: input.pattern, files, names, own: own ?? null };
    const report = await runSearch(task, timeoutSeconds, signal);
    return describeFindings(report, walked, files.length, timeoutSeconds);
  } catch (error) {
    throw describeSystemError(error, shown);
  }
}

function assertPattern(pattern: string): void {
  try {
    new RegExp(pattern, "u");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`The pattern is not a regular expression: ${why}. Escape literal characters with a backslash.`);
  }
}

function alone(path: string): FolderListing {
  return { entries: [{ path, kind: "file" }], isCut: false, passed: 0, closed: 0 };
}

interface SearchAnswer extends SearchReport {
  readonly isLate: boolean;
}

/** Searches in a worker thread, so that a pattern that takes forever can be stopped and does not block the agent. */
async function runSearch(task: SearchTask, timeoutSeconds: number, signal?: AbortSignal): Promise<SearchAnswer> {
  signal?.throwIfAborted();
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./search-worker.${extension}`, import.meta.url), { workerData: task });
  const { promise, resolve, reject } = Promise.withResolvers<SearchAnswer>();
  let hasBegun = false;
  let report: SearchReport = { lines: [], searched: 0, isCut: false, skipped: 0, isDone: false };
  const stop = (): void => reject(new Error("The search was stopped."));
  // Reports that are already here are read first: on a busy machine the timer can come before them.
  const late = (): void => void setImmediate(() => resolve({ ...report, isLate: true }));
  let timer = setTimeout(late, (STARTING_SECONDS + timeoutSeconds) * 1000);
  worker.on("message", (said: SearchReport) => {
    // The first report says that the search has begun: starting a thread can take longer than searching.
    if (!hasBegun) {
      hasBegun = true;
      clearTimeout(timer);
      timer = setTimeout(late, timeoutSeconds * 1000);
    }
    report = { ...said, lines: [...report.lines, ...said.lines] };
    if (said.isDone) resolve({ ...report, isLate: false });
  });
  worker.on("error", reject);
  worker.on("exit", () => reject(new Error("The search ended by itself. Nothing was changed; try a simpler pattern.")));
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    // A thread blocked in the kernel, for example on a disk that does not respond, cannot be terminated: do not wait
    // for it.
    await Promise.race([worker.terminate(), pause(TERMINATION_MS, undefined, { ref: false })]);
  }
}

function describeFindings(report: SearchAnswer, walked: FolderListing, files: number, timeoutSeconds: number): string {
  const { lines, searched: count, isCut, skipped, isLate } = report;
  const said = [
    ...(isCut
      ? [`only the first ${lines.length} lines are shown: use a more specific pattern, or search a subfolder`]
      : []),
    ...(isLate
      ? [`ended after ${timeoutSeconds} s, with ${count} of ${files} files searched: use a simpler pattern`]
      : []),
    ...(walked.isCut ? [`only the first ${FILES_MAX} files and folders were searched`] : []),
    ...(skipped > 0 ? [`${skipped} files skipped: not text, or too large`] : []),
    ...notes(walked),
  ];
  const text = lines.length > 0 ? lines.join("\n") : "[Nothing found.]";
  return said.length === 0 ? text : `${text}\n[${said.join("; ")}.]`;
}
