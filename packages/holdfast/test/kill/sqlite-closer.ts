import { once } from "node:events";
import { closeSync, openSync, readdirSync, readSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { isHoldfastError, newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";

/**
 * A process that writes to an SQLite store, and in which other code opens, reads and closes every file of the store
 * meanwhile, as a search tool, a backup or a hash of the folder does. Each `close` gives away the POSIX locks that the
 * process has on that file.
 *
 * `<file> <durability> <lives> <appends> <closer>`: opens the store so many times, and appends so many notes to a new
 * session each time (0: until its input ends). Writes `<id> <number>` to descriptor 3, or to the one that
 * HOLDFAST_REPORTS_FD names, when a note is acknowledged, and `refused <pid>` if that process has the store.
 */
const REPORTS_FD = Number(process.env["HOLDFAST_REPORTS_FD"] ?? 3);

function* filesOf(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) yield join(entry.parentPath, entry.name);
}

/** A file that went away meanwhile is none to be read. */
function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

function readAll(folder: string): void {
  try {
    for (const path of filesOf(folder)) {
      const fd = openSync(path, "r");
      readSync(fd, Buffer.alloc(64));
      closeSync(fd);
    }
  } catch (error) {
    ignoreMissing(error);
  }
}

async function readAllLater(folder: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    // There may be no file yet.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      for (const path of filesOf(folder)) {
        const file = await open(path);
        await file.read(Buffer.alloc(64), 0, 64, 0);
        await file.close();
      }
    } catch (error) {
      ignoreMissing(error);
    }
  }
}

/** Node's standard output does not wait for its reader. */
function report(line: string): void {
  for (;;) {
    try {
      writeSync(REPORTS_FD, line);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}

function refused(error: unknown): null {
  if (!isHoldfastError(error, "STORE_BUSY")) throw error;
  report(`refused ${(error.facts["holder"] as { pid: number }).pid}\n`);
  return null;
}

if (!isMainThread) {
  readAll(workerData as string);
  parentPort!.postMessage("reading");
  for (;;) readAll(workerData as string);
}

const [file, durability, lives, appends, closer] = process.argv.slice(2) as [
  string,
  "power" | "process",
  string,
  string,
  "nobody" | "this thread" | "the thread pool" | "a worker",
];
const folder = dirname(file);
let isOver = false;
let isToldToEnd = false;
process.stdin.resume().once("end", () => {
  isToldToEnd = true;
});
const worker = closer === "a worker" ? new Worker(new URL(import.meta.url), { workerData: folder }) : null;
if (worker) await once(worker, "message");
const reading = closer === "the thread pool" ? readAllLater(folder, () => isOver) : null;
for (let life = 0; life < Number(lives); life++) {
  await using store = await openSqliteStore(file, { durability }).catch(refused);
  if (!store) continue;
  const id = newId();
  await using journal = await store.create(id, []);
  for (let i = 1; appends === "0" ? !isToldToEnd : i <= Number(appends); i++) {
    if (closer === "this thread") readAll(folder);
    // Of different sizes, so that they take one page or several.
    await journal.append({ kind: "note", i, fill: "x".repeat((i % 5) * 1500) });
    report(`${id} ${i}\n`);
    if (i % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
isOver = true;
await reading;
await worker?.terminate();
process.stdin.destroy();
