import { noteSummariser, type Step } from "@holdfast/testkit";
import { openPostgresStore } from "../../src/index.ts";

/** A process of its own that appends to a session and is killed: `writer-that-dies.ts <url> <id> <steps> <app>`. */
const [url, id, steps, app] = process.argv.slice(2);
const store = await openPostgresStore(url!, { summariser: noteSummariser, monthsAhead: 0, app: app! });
const { journal } = await store.open(id!);
for (const { records, key } of JSON.parse(steps!) as Step[]) {
  await journal.append(records, key === undefined ? {} : { key });
}
process.kill(process.pid, "SIGKILL");
