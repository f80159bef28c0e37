import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeDisk } from "holdfast/disk";
import { expect, test } from "vitest";
import { createAtomically } from "../../src/stores/folder/files/create-atomically.ts";
import { place } from "../place.ts";

test("S15: a name that another writer took in the meantime stays its own, and no other file is left behind", () => {
  using here = place();
  const path = join(here.path, "000002.jsonl");
  const write = (put: (bytes: Uint8Array) => void): void => {
    put(Buffer.from("mine"));
    writeFileSync(path, "another writer's");
  };
  expect(() => createAtomically(nodeDisk, here.path, "000002.jsonl", write, { unlessThere: true })).toThrow(
    expect.objectContaining({ code: "LEASE_LOST" }),
  );
  expect(readFileSync(path, "utf8")).toBe("another writer's");
  expect(readdirSync(here.path)).toEqual(["000002.jsonl"]);
});
