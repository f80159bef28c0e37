import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CommandError, EXIT } from "../exit.ts";
import { makeOwnFolder } from "../own-folder.ts";
import { outputsFolder } from "../store/output-folders.ts";

const LOCK = "watch.lock";
const PROCESS = "watch.pid";

/**
 * Lets one process watch for a store. The lock is the system's own, taken by way of SQLite: it is gone as soon as its
 * process is, however that ends. Throws CommandError WATCH_BUSY.
 */
export function lockWatch(storeUrl: string): Disposable {
  const folder = outputsFolder(storeUrl);
  if (folder === null)
    throw new CommandError(EXIT.usage, "USAGE", "A store in memory keeps nothing: give another one with --store.");
  makeOwnFolder(folder, []);
  const database = new DatabaseSync(join(folder, LOCK), { timeout: 0 });
  try {
    database.exec("pragma journal_mode = delete; pragma locking_mode = exclusive; begin exclusive");
  } catch (error) {
    database.close();
    const isBusy = error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === BUSY;
    if (!isBusy) throw error;
    const message = `holdfast watch runs already${processWords(folder)}, and keeps sessions in this store. One is enough. Nothing was changed.`;
    throw new CommandError(EXIT.busy, "WATCH_BUSY", message);
  }
  writeFileSync(join(folder, PROCESS), `${process.pid}\n`, { mode: 0o600 });
  return {
    [Symbol.dispose]: () => {
      rmSync(join(folder, PROCESS), { force: true });
      database.close();
    },
  };
}

const BUSY = 5;

function processWords(folder: string): string {
  try {
    const pid = Number(readFileSync(join(folder, PROCESS), "utf8"));
    return Number.isInteger(pid) && pid > 0 ? ` (process ${pid})` : "";
  } catch (error) {
    // It has just started, or is about to end.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
