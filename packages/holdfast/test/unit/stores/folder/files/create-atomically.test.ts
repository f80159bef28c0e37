import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { expect, test } from "vitest";
import { createAtomically } from "../../../../../src/stores/folder/files/create-atomically.ts";
import { place } from "../../../../place.ts";

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

const put =
  (text: string) =>
  (write: (bytes: Uint8Array) => void): void =>
    write(Buffer.from(text));

test.each(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"])(
  "S15: where a file can have one name only (%s), it is renamed, unless the name is taken",
  (errno) => {
    using here = place();
    const link = (): never => {
      throw Object.assign(new Error(errno), { code: errno });
    };
    const disk: Disk = { ...nodeDisk, link };
    createAtomically(disk, here.path, "file", put("first"), { unlessThere: true });
    expect(readFileSync(join(here.path, "file"), "utf8")).toBe("first");
    expect(() => createAtomically(disk, here.path, "file", put("second"), { unlessThere: true })).toThrow(
      expect.objectContaining({ code: "LEASE_LOST" }),
    );
    expect(readFileSync(join(here.path, "file"), "utf8")).toBe("first");
    expect(readdirSync(here.path)).toEqual(["file"]);
  },
);

test("any other failure to give the name is told, also if the name is taken", () => {
  using here = place();
  writeFileSync(join(here.path, "file"), "another's");
  const link = (): never => {
    throw Object.assign(new Error("EIO"), { code: "EIO" });
  };
  const disk: Disk = { ...nodeDisk, link };
  expect(() => createAtomically(disk, here.path, "file", put("mine"), { unlessThere: true })).toThrow(
    expect.objectContaining({ code: "STORE_IO" }),
  );
  expect(readFileSync(join(here.path, "file"), "utf8")).toBe("another's");
  expect(readdirSync(here.path)).toEqual(["file"]);
});

test("without `unlessThere` an existing file is replaced", () => {
  using here = place();
  createAtomically(nodeDisk, here.path, "file", put("first"));
  createAtomically(nodeDisk, here.path, "file", put("second"));
  expect(readFileSync(join(here.path, "file"), "utf8")).toBe("second");
});

test("bytes that do not pass the check do not get the name, and are removed", () => {
  using here = place();
  const check = (temporary: string): void => {
    expect(readFileSync(temporary, "utf8")).toBe("bytes");
    throw Object.assign(new Error("not what they should be"), { code: "EIO" });
  };
  expect(() => createAtomically(nodeDisk, here.path, "file", put("bytes"), { check })).toThrow(
    expect.objectContaining({ code: "STORE_IO" }),
  );
  expect(readdirSync(here.path)).toEqual([]);
});

/** The real disk, whose writes take as many bytes as `take` says. */
function taking(take: (wanted: number) => number): Disk {
  return {
    ...nodeDisk,
    open: (path, mode) => {
      const file: DiskFile = nodeDisk.open(path, mode);
      const write = file.write.bind(file);
      return Object.assign(file, { write: (bytes: Uint8Array) => write(bytes.subarray(0, take(bytes.length))) });
    },
  };
}

test("S11: a write that takes fewer bytes is continued, and one that takes none means a full disk", () => {
  using here = place();
  createAtomically(
    taking((wanted) => Math.min(wanted, 3)),
    here.path,
    "file",
    put("ten bytes."),
  );
  expect(readFileSync(join(here.path, "file"), "utf8")).toBe("ten bytes.");
  let calls = 0;
  const full = taking((wanted) => (calls++ === 0 ? Math.min(wanted, 3) : 0));
  expect(() => createAtomically(full, here.path, "other", put("ten bytes."))).toThrow(
    expect.objectContaining({ code: "STORE_FULL" }),
  );
  expect(readdirSync(here.path)).toEqual(["file"]);
});
