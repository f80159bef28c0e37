import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { newId } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, onTestFinished, test, vi } from "vitest";
import { Leases } from "../../../src/stores/lease.ts";
import { place, treeOf } from "../../place.ts";

/** P6: the right to write, and what can and cannot take it away. */

/** Node in another process, with the library's sources. */
async function elsewhere(program: string, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const code = ["--conditions=holdfast-source", "--input-type=module", "-e", program];
  const { stdout } = await promisify(execFile)(process.execPath, code, { cwd: import.meta.dirname, env });
  return stdout.trim();
}

const tryToOpen = (root: string, id: string): string => `
  import { openFolderStore } from "holdfast/internal";
  const store = await openFolderStore(${JSON.stringify(root)});
  const said = await store.open(${JSON.stringify(id)}).then(() => "opened", (error) => error.code);
  console.log(said, (await store.holder(${JSON.stringify(id)}))?.pid ?? null);
  process.exit();`;

async function untilHard(root: string, id: string): Promise<void> {
  const path = join(root, "leases", `${id}.lock`);
  for (;;) {
    const lock = existsSync(path) ? nodeDisk.hardLock(path) : "none";
    if (lock === "taken") return;
    if (lock !== "none") lock.release();
    await sleep(20);
  }
}

test("reading every file of the store in the writer's own process does not give the session away (S13)", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  const journal = await store.create(id, []);
  await untilHard(here.path, id);
  // As a backup does, or a search over the folder that the store is in: each file is opened, read and closed.
  expect([...treeOf(here.path).keys()]).toContain(join("leases", id));
  const path = JSON.stringify(join(here.path, "leases", id));
  const look = `import { nodeDisk } from "holdfast/disk"; console.log(nodeDisk.isLocked(${path}));`;
  expect(await elsewhere(look), "the POSIX lock is gone").toBe("false");
  expect(await elsewhere(tryToOpen(here.path, id))).toBe(`SESSION_BUSY ${process.pid}`);
  await journal.append({ kind: "message" });
  await journal.close();
  expect(await elsewhere(tryToOpen(here.path, id))).toMatch(/^opened \d+$/);
});

test("every lock is free as soon as its process is killed", async () => {
  using here = place();
  const id = newId();
  const program = `
    import { openFolderStore } from "holdfast/internal";
    const store = await openFolderStore(${JSON.stringify(here.path)});
    globalThis.journal = await store.create(${JSON.stringify(id)}, []);
    console.log("open");
    setInterval(() => {}, 1000);`;
  const code = ["--conditions=holdfast-source", "--input-type=module", "-e", program];
  const child = spawn(process.execPath, code, { cwd: import.meta.dirname, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  await untilHard(here.path, id);
  await using store = await openFolderStore(here.path);
  await expect(store.open(id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await store.holder(id)).toBeNull();
  await (await store.open(id)).journal.close();
});

test("a hard lock that a look kept away is asked for again, until it is there", async () => {
  using here = place();
  let tries = 0;
  const disk = { ...nodeDisk, hardLock: () => (++tries < 3 ? ("taken" as const) : { release: () => {} }) };
  await using store = await openFolderStore(here.path, { disk });
  const journal = await store.create(newId(), []);
  while (tries < 3) await sleep(20);
  await sleep(1000);
  expect(tries).toBe(3);
  await journal.close();
});

test("P6: two processes that check the same session at once do not take each other for its holder", async ({
  skip,
}) => {
  using here = place();
  const id = newId();
  const path = join(here.path, "leases", id);
  await (await openFolderStore(here.path)).close();
  for (const name of [path, `${path}.lock`]) writeFileSync(name, "");
  writeFileSync(`${path}.json`, JSON.stringify({ pid: process.ppid, host: hostname(), app: "x", since: "y" }));
  const other = nodeDisk.hardLock(`${path}.lock`, "shared");
  if (other === "none") return skip("not run: there is no hard lock here");
  const leases = Leases.inRoot(nodeDisk, here.path);
  expect(leases.holder(id)).toBeNull();
  (await leases.take(id, "one")).release();
  if (other !== "taken") other.release();
});

test("on a system without the program `flock` there is no hard lock, and everything else works", async () => {
  using here = place();
  const id = newId();
  const program = `
    import { openFolderStore } from "holdfast/internal";
    import { nodeDisk } from "holdfast/disk";
    const store = await openFolderStore(${JSON.stringify(here.path)}, { durability: "process" });
    const journal = await store.create(${JSON.stringify(id)}, []);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await journal.append({ kind: "message" });
    const path = ${JSON.stringify(join(here.path, "leases", "x.lock"))};
    console.log(nodeDisk.hardLock(path));
    await journal.close();
    console.log((await store.verify(${JSON.stringify(id)})).records);`;
  expect(await elsewhere(program, { PATH: "" })).toBe("none\n4");
});

test("under `process`, a writer looks before each acknowledgement until it has the hard lock, and then once a second", async () => {
  using here = place();
  let stats = 0;
  let isFree = false;
  let isReleased = false;
  const granted = Promise.withResolvers<void>();
  const disk = {
    ...nodeDisk,
    stat: (path: string) => {
      stats++;
      return nodeDisk.stat(path);
    },
    hardLock: () => {
      if (!isFree) return "taken" as const;
      granted.resolve();
      return { release: () => (isReleased = true) };
    },
  };
  await using store = await openFolderStore(here.path, { disk, durability: "process", catalogue: false });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "message" });
  stats = 0;
  for (let i = 0; i < 10; i++) await journal.append({ kind: "message" });
  expect(stats).toBe(30);
  isFree = true;
  await granted.promise;
  await journal.flush();
  stats = 0;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    for (let i = 0; i < 10; i++) await journal.append({ kind: "message" });
    expect(stats, "within the second").toBe(0);
    vi.advanceTimersByTime(1100);
    await vi.waitFor(() => expect(stats, "after it").toBe(3));
  } finally {
    vi.useRealTimers();
  }
  await journal.close();
  expect(isReleased).toBe(true);
});

test("who closed the session where is told to the next writer once", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  await (await store.create(id, [])).close();
  const path = join(here.path, "leases", `${id}.closed`);
  const bytes = readFileSync(join(here.path, "sessions", id, "000001.jsonl")).length;
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ segment: "000001.jsonl", bytes });
  const { journal } = await store.open(id);
  await journal.append({ kind: "message" });
  expect(() => readFileSync(path)).toThrow("ENOENT");
  await journal.close();
  expect(JSON.parse(readFileSync(path, "utf8")).bytes).toBeGreaterThan(bytes);
});
