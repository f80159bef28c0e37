import { noteSummariser, type Step } from "@holdfast/testkit";
import { openers } from "./openers.ts";

/** A process of its own that appends to a session and is killed: `writer-that-dies.ts <store> <path> <id> <steps>`. */
const [kind, path, id, steps] = process.argv.slice(2);
const store = await openers[kind as keyof typeof openers](path!, { summariser: noteSummariser });
const { journal } = await store.open(id!);
for (const { records, key } of JSON.parse(steps!) as Step[]) {
  await journal.append(records, key === undefined ? {} : { key });
}
process.kill(process.pid, "SIGKILL");
