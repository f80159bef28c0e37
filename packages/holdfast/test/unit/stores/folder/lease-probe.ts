import { HoldfastError } from "holdfast";
import { openFolderStore } from "holdfast/internal";

/** A process of its own that tries to open a session, says how that went, and ends. */
const [root, id] = process.argv.slice(2) as [string, string];
const store = await openFolderStore(root);
let answer = "free";
try {
  await (await store.open(id)).journal.close();
} catch (error) {
  answer = error instanceof HoldfastError ? error.code : String(error);
}
process.send?.(answer);
process.disconnect();
