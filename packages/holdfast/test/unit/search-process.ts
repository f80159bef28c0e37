import { openFolderStore } from "holdfast/internal";
import { findDialect } from "../../src/dialects/index.ts";
import { SearchIndex } from "../../src/search/search-index.ts";

/**
 * Another process that searches a folder store, told by its parent:
 * - `search <root> <text> <rounds>`: says how many hits there were, each time;
 * - `die <root> <text> <n>`: the same, but is killed when it has read the n-th message.
 */
const [task, root, text, argument] = process.argv.slice(2);
const store = await openFolderStore(root!);
let messages = 0;
const index = new SearchIndex(store, {
  dialectNamed: (name) => {
    if (task === "die" && ++messages === Number(argument)) process.kill(process.pid, "SIGKILL");
    return findDialect(name);
  },
});
for (let round = 0; round < (task === "die" ? 1 : Number(argument)); round++) {
  process.send!((await Array.fromAsync(index.search(text!))).length);
}
await index.close();
await store.close();
process.disconnect();
