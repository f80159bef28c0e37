import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";

/** A thread that opens a store, writes to a session, and never closes either. */
const THREAD = `
  import { parentPort, workerData } from "node:worker_threads";
  import { openSqliteStore } from "holdfast/internal";
  const store = await openSqliteStore(workerData.file);
  const journal = await store.create(workerData.id, [{ kind: "session" }]);
  await journal.append({ kind: "message" });
  parentPort.postMessage("written");
  setInterval(() => journal.head, 1000);
`;

test("a thread that is ended without closing the store no longer holds it", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const id = newId();
  const source = new URL(
    `data:text/javascript,${encodeURIComponent(THREAD.replaceAll('"holdfast/internal"', JSON.stringify(import.meta.resolve("holdfast/internal"))))}`,
  );
  const thread = new Worker(source, { workerData: { file, id }, execArgv: ["--conditions=holdfast-source"] });
  await new Promise((resolve, reject) => {
    thread.once("message", resolve);
    thread.once("error", reject);
  });
  await expect(openSqliteStore(file)).rejects.toMatchObject({ code: "STORE_BUSY", facts: { sameProcess: true } });
  await thread.terminate();
  await using store = await openSqliteStore(file);
  const { journal, records } = await store.open(id);
  expect(records.map(({ kind }) => kind)).toEqual(["segment", "session", "opened", "message"]);
  await journal.append({ kind: "message" });
  await store.close();
  expect(existsSync(`${file}-wal`)).toBe(false);
});
