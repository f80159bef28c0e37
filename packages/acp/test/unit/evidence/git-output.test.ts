import { expect, test } from "vitest";
import { readObjects, readSizes, readStatus, readTreeChanges } from "../../../src/evidence/git-output.ts";

const OID = "7148208fe3b6acdf6f4e34e7de5c76ef0b238724";

test("the status of a work tree: changed, in conflict and untracked files, with any character in their names", () => {
  const modes = `100644 100644 100644 ${OID} ${OID}`;
  const output = [
    `# branch.oid ${OID}`,
    "# branch.head main",
    `1 .M N... ${modes} a b\nc.txt`,
    `u UU N... 100644 100644 100644 100644 ${OID} ${OID} ${OID} both.txt`,
    "? new folder/x",
    "? cut of",
  ].join("\0");
  expect(readStatus(output)).toEqual({
    head: OID,
    entries: [
      { path: "a b\nc.txt", isUntracked: false },
      { path: "both.txt", isUntracked: false },
      { path: "new folder/x", isUntracked: true },
    ],
  });
});

test("before the first commit there is no head", () => {
  expect(readStatus("# branch.oid (initial)\0? a\0").head).toBeNull();
  expect(readStatus("# branch.oid ../../etc\0").head).toBeNull();
});

test("what differs between two commits", () => {
  expect([...readTreeChanges("A\0new\0D\0gone\0M\0b\0T\0")]).toEqual([
    ["new", "new"],
    ["gone", "removed"],
    ["b", "changed"],
  ]);
});

test("the objects of a batch: those that are missing or no files are left out, and a cut answer ends it", () => {
  const tree = Buffer.concat([Buffer.from(`${OID} tree 3\n`), Buffer.from([1, 0x0a, 2, 0x0a])]);
  const output = Buffer.concat([
    Buffer.from(`x missing\n`),
    tree,
    Buffer.from(`${OID} blob 5\na\nb\0c\n${OID} blob 9\nsho`),
  ]);
  const found = readObjects(output, ["x", "t", "f", "g", "h"]);
  expect([...found].map(([name, bytes]) => [name, bytes.toString()])).toEqual([["f", "a\nb\0c"]]);
  expect([...readSizes(`x missing\n${OID} blob 5\n${OID} tree 3\n`, ["x", "f", "t"])]).toEqual([["f", 5]]);
});
