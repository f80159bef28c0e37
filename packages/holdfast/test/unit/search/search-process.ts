import { DatabaseSync } from "node:sqlite";
import { openFolderStore } from "holdfast/internal";
import { findDialect } from "../../../src/dialects/index.ts";
import { SearchIndex } from "../../../src/search/search-index.ts";

/**
 * Another process that searches a folder store, told by its parent:
 * - `search <root> <text> <rounds>`: says how many hits there were, each time;
 * - `die <root> <text> <n>`: the same, but is killed when it has read the n-th message;
 * - `tear <root> <text> <n>`: the same, but is killed when a part of its n-th commit is in the file.
 */
const [task, root, text, argument] = process.argv.slice(2);
const store = await openFolderStore(root!);
if (task === "tear") {
  const { exec } = DatabaseSync.prototype;
  let commits = 0;
  DatabaseSync.prototype.exec = function (sql) {
    const isMarked = (): boolean => Number(this.prepare("PRAGMA user_version").get()?.["user_version"]) < 0;
    if (sql === "COMMIT" && isMarked() && ++commits === Number(argument)) process.kill(process.pid, "SIGKILL");
    exec.call(this, sql);
    // SQLite writes pages before the commit if it has no space for them.
    if (sql.includes("journal_mode")) exec.call(this, "PRAGMA cache_size=1; PRAGMA cache_spill=1");
  };
}
let messages = 0;
const index = new SearchIndex(store, {
  dialectNamed: (name) => {
    if (task === "die" && ++messages === Number(argument)) process.kill(process.pid, "SIGKILL");
    return findDialect(name);
  },
});
for (let round = 0; round < (task !== "search" ? 1 : Number(argument)); round++) {
  process.send!((await Array.fromAsync(index.search(text!))).length);
}
await index.close();
await store.close();
process.disconnect();
