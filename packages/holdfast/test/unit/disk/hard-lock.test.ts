import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { nodeDisk } from "holdfast/disk";
import { expect, test } from "vitest";
import { place } from "../../place.ts";

test("a child that cannot be started leaves no descriptor open, and is no lock", ({ skip }) => {
  if (process.platform !== "linux") skip("not run: elsewhere a hard lock needs no child");
  using here = place();
  const module = process.getBuiltinModule("node:child_process");
  const { spawnSync } = module;
  // As Node does, where there is no memory for a child, or none is permitted.
  module.spawnSync = () => {
    throw Object.assign(new Error("spawn ENOMEM"), { code: "ENOMEM" });
  };
  const path = join(here.path, "lock");
  try {
    expect(nodeDisk.hardLock(path)).toBe("none");
  } finally {
    module.spawnSync = spawnSync;
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

test("P6: a hard lock is not given away by a close, and is free once it is released", ({ skip }) => {
  using here = place();
  const path = join(here.path, "lock");
  const lock = nodeDisk.hardLock(path);
  if (typeof lock === "string") return skip("not run: no hard lock here");
  closeSync(openSync(path, "r"));
  expect(nodeDisk.hardLock(path)).toBe("taken");
  lock.release();
  const again = nodeDisk.hardLock(path);
  if (typeof again === "string") throw new Error(again);
  again.release();
});
