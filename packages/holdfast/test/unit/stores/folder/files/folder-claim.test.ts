import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Disk, nodeDisk } from "holdfast/disk";
import { expect, test } from "vitest";
import { claim, claimNext, isClaimed, unclaim } from "../../../../../src/stores/folder/files/claim.ts";
import { SEGMENT_NUMBER_MAX } from "../../../../../src/stores/folder/files/segment.ts";
import { place } from "../../../../place.ts";

test("the number after all segments and claims is claimed, packed segments included", () => {
  using here = place();
  expect(claimNext(nodeDisk, here.path)).toBe(1);
  writeFileSync(join(here.path, "000004.jsonl.zst"), "");
  expect(claimNext(nodeDisk, here.path)).toBe(5);
  expect(claimNext(nodeDisk, here.path)).toBe(6);
  writeFileSync(join(here.path, "000009.jsonl"), "");
  expect(claimNext(nodeDisk, here.path)).toBe(10);
  expect(readdirSync(here.path).filter((name) => name.endsWith(".claim"))).toHaveLength(4);
});

test("a number that another writer claims first, or starts as a segment, is left to it", () => {
  using here = place();
  const rivals = [
    (): void => writeFileSync(join(here.path, "000001.claim"), ""),
    // It has removed its own claim by now.
    (): void => writeFileSync(join(here.path, "000002.jsonl"), ""),
  ];
  const disk: Disk = {
    ...nodeDisk,
    list: (path) => {
      const names = nodeDisk.list(path);
      rivals.shift()?.();
      return names;
    },
  };
  expect(claimNext(disk, here.path)).toBe(3);
});

test("a session for which others claim every number is busy, and the attempt ends", () => {
  using here = place();
  let attempts = 0;
  const open = (): never => {
    attempts++;
    throw Object.assign(new Error("taken"), { code: "EEXIST" });
  };
  expect(() => claimNext({ ...nodeDisk, open }, here.path)).toThrow(expect.objectContaining({ code: "EBUSY" }));
  expect(attempts).toBe(1000);
});

test("one number is claimed by one writer", () => {
  using here = place();
  claim(nodeDisk, here.path, 7);
  expect(isClaimed(nodeDisk, here.path, 7)).toBe(true);
  expect(isClaimed(nodeDisk, here.path, 8)).toBe(false);
  expect(() => claim(nodeDisk, here.path, 7)).toThrow(expect.objectContaining({ code: "LEASE_LOST" }));
  unclaim(nodeDisk, here.path, 7);
  unclaim(nodeDisk, here.path, 7);
  expect(isClaimed(nodeDisk, here.path, 7)).toBe(false);
  claim(nodeDisk, here.path, SEGMENT_NUMBER_MAX);
  expect(() => claim(nodeDisk, here.path, SEGMENT_NUMBER_MAX + 1)).toThrow(
    expect.objectContaining({ code: "STORE_FULL" }),
  );
});
