import { afterEach, expect, test } from "vitest";
import { needsWorkerd, TestWorker } from "../workers/workerd.ts";

let worker: TestWorker | undefined;
afterEach(() => worker?.remove());

async function start(options: Parameters<typeof TestWorker.create>[1]): Promise<TestWorker> {
  worker = await TestWorker.create("refusals-worker.ts", options);
  await worker.start();
  return worker;
}

test("a Worker has stores in its object and in memory; what needs a disk or Node's SQLite is refused", async (context) => {
  needsWorkerd(context);
  const started = await start({});
  const answers = ["/", "/?address=memory:", "/?address=./data", "/?address=/tmp/data", "/?address=sqlite:/tmp/a"];
  const found = await Promise.all(answers.map(async (path) => JSON.parse(await started.text(path)) as string[]));
  const searchless = ["open", "write", "search: NOT_SUPPORTED", "close"];
  const refused = ["open: NOT_SUPPORTED"];
  expect(found, started.stderr).toEqual([searchless, searchless, refused, refused, refused]);
});

test("an object without an SQLite database is refused", async (context) => {
  needsWorkerd(context);
  expect(await (await start({ sql: false })).text("/")).toBe('["open: NOT_SUPPORTED"]');
});

test("a compatibility date from before the timers of Node.js is refused, before anything is written", async (context) => {
  needsWorkerd(context);
  expect(await (await start({ date: "2026-02-01" })).text("/")).toBe('["open: NOT_SUPPORTED"]');
});
