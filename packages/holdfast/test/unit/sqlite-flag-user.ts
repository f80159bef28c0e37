import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { nodeDisk } from "holdfast/disk";
import { isBusy } from "../../src/stores/sqlite/database/failure.ts";
import { FlagLock, type Use } from "../../src/stores/sqlite/database/flag-lock.ts";

/**
 * Another process that uses a FlagLock:
 * - `count <folder> <times>`: adds one to the number in a file this many times, in steps that lose numbers if two
 *   processes interleave; and closes the files of the lock all the time, so that no POSIX lock on them lasts;
 * - `die <folder>`: is killed inside a use;
 * - `stay <folder> <use>`: says when it is inside the use, and stays there.
 */
const [task, folder, extra] = process.argv.slice(2) as [string, string, string];
const lock = FlagLock.open(nodeDisk, folder);

if (task === "die") {
  lock.use("alone", () => process.kill(process.pid, "SIGKILL"));
} else if (task === "stay") {
  lock.use(extra as Use, () => {
    writeSync(1, "inside");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
} else {
  const path = join(folder, "..", "number");
  const addOne = (): void => {
    const number = Number(readFileSync(path, "utf8"));
    // A file of one who is just arriving may be gone by now.
    for (const name of readdirSync(folder)) if (!name.endsWith(".claim")) closeSync(openSync(join(folder, name), "r"));
    writeFileSync(path, String(number + 1));
  };
  for (let done = 0; done < Number(extra); ) {
    try {
      lock.use(done % 50 === 0 ? "alone" : "write", addOne);
      done++;
    } catch (error) {
      if (!isBusy(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 2));
    }
  }
  lock.close();
}
