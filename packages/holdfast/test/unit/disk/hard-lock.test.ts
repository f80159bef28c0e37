import { spawnSync } from "node:child_process";
import { openSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { nodeDisk } from "holdfast/disk";
import { expect, test } from "vitest";
import { place } from "../../place.ts";

const hasFlock = process.platform === "linux" && spawnSync("flock", ["--version"]).error === undefined;

test("P6: a hard lock that is given up while it is asked for is free at once, also if the process blocks then", async ({
  skip,
}) => {
  if (!hasFlock) skip("not run: no program flock here");
  using here = place();
  const path = join(here.path, "lock");
  const unwanted = new AbortController();
  const asked = nodeDisk.hardLock(path, unwanted.signal);
  await nextTurn();
  // The program gets the lock meanwhile, and this process does not hear of it.
  spawnSync("sleep", ["0.3"]);
  unwanted.abort();
  // In the same turn of the event loop, as somebody who blocks. It waits: a killed program may have the file for an
  // instant.
  const fd = openSync(path, "r");
  const { status } = spawnSync("flock", ["-w", "5", "-x", "3"], { stdio: ["ignore", "ignore", "ignore", fd] });
  expect(status).toBe(0);
  expect(await asked).toBeNull();
  expect(await nodeDisk.hardLock(path, unwanted.signal)).toBeNull();
});

test("many hard locks asked for at once start one child at a time, and one that is given up starts none", async ({
  skip,
}) => {
  if (!hasFlock) skip("not run: no program flock here");
  using here = place();
  const module = process.getBuiltinModule("node:child_process");
  const { spawn } = module;
  let running = 0;
  let most = 0;
  let started = 0;
  module.spawn = ((...given: Parameters<typeof spawn>) => {
    started++;
    most = Math.max(most, ++running);
    return spawn(...given).once("exit", () => running--);
  }) as typeof spawn;
  try {
    const unwanted = new AbortController();
    const asked = Array.from({ length: 12 }, (_, i) =>
      nodeDisk.hardLock(join(here.path, String(i)), i % 2 === 0 ? undefined : unwanted.signal),
    );
    unwanted.abort();
    const locks = await Promise.all(asked);
    expect(locks.map((lock) => lock !== null)).toEqual(locks.map((_, i) => i % 2 === 0));
    expect({ most, started }).toEqual({ most: 1, started: 6 });
    for (const lock of locks) lock?.release();
  } finally {
    module.spawn = spawn;
  }
});

test("a child that cannot be started leaves no descriptor open", async ({ skip }) => {
  if (process.platform !== "linux") skip("not run: elsewhere a hard lock needs no child");
  using here = place();
  const module = process.getBuiltinModule("node:child_process");
  const { spawn } = module;
  // As Node does, where there is no memory for a child, or none is permitted.
  module.spawn = () => {
    throw Object.assign(new Error("spawn ENOMEM"), { code: "ENOMEM" });
  };
  const path = join(here.path, "lock");
  try {
    await expect(nodeDisk.hardLock(path)).rejects.toMatchObject({ code: "ENOMEM" });
  } finally {
    module.spawn = spawn;
  }
  const open = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return null;
    }
  });
  expect(open).not.toContain(path);
});
