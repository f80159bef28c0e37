import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/index.ts";
import { startServer } from "../server/server.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../examples/fleet.ts", import.meta.url));

test("examples/fleet.ts: two workers finish what another one left, post each summary once, and end when they are told to", async () => {
  const server = await startServer(["fsync=off"]);
  onTestFinished(() => server.stop());
  await server.query("CREATE TABLE summaries (call text, text text)");
  const store = await openStore(server.url, { monthsAhead: 0 });
  const ids: string[] = [];
  for (let n = 0; n < 4; n++) {
    const session = await store.create({ dialect: "anthropic", labels: { queue: "releases" } });
    await session.startTurn({ role: "user", content: "Tell everybody about the release." });
    await session.close();
    ids.push(session.id);
  }
  const workers = [1, 2].map(() =>
    spawn(process.execPath, ["--conditions=holdfast-source", EXAMPLE, server.url], {
      stdio: ["ignore", "inherit", "inherit"],
    }),
  );
  onTestFinished(() => {
    for (const worker of workers) worker.kill("SIGKILL");
  });
  const isDone = async (): Promise<boolean> => (await store.list({ status: "idle" })).sessions.length === ids.length;
  await expect.poll(isDone, { timeout: 60_000, interval: 100 }).toBe(true);
  const rows = await server.query("SELECT call FROM summaries");
  expect(rows).toHaveLength(ids.length);
  const ended = workers.map((worker) => once(worker, "exit"));
  for (const worker of workers) worker.kill("SIGTERM");
  expect(await Promise.all(ended)).toEqual([
    [0, null],
    [0, null],
  ]);
  for (const id of ids) expect(JSON.stringify((await store.read(id)).messages)).toContain("That is all done.");
  await store.close();
}, 120_000);
