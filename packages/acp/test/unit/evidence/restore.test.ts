import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type NoteRef, planRestore, type RestorePlan, restoreFiles } from "../../../src/evidence/index.ts";
import { Place } from "./git-folder.ts";

async function planIn(place: Place, ref: NoteRef | null): Promise<RestorePlan> {
  return (await planRestore(ref!, place.kept, place))!;
}

test("puts back what was noted, committed or not, and leaves what was not there", async () => {
  using place = new Place();
  place.commit({ "a.txt": "a\n", "sub/deep/b.txt": "b\n", "c.txt": "c\n" });
  place.write({ "c.txt": "dirty\n", "untracked.txt": "u\n" });
  const ref = await place.note();
  rmSync(join(place.folder, "sub"), { recursive: true });
  place.write({ "a.txt": "A\n", "c.txt": "cc\n", "new.txt": "n\n" });
  rmSync(join(place.folder, "untracked.txt"));
  const plan = await planIn(place, ref);
  expect(plan.left).toEqual([{ path: "new.txt", why: "it was not there before" }]);
  expect(restoreFiles(plan, place)).toEqual({
    restored: ["a.txt", "c.txt", "sub/deep/b.txt", "untracked.txt"],
    changed: [],
  });
  expect(
    ["a.txt", "c.txt", "sub/deep/b.txt", "untracked.txt", "new.txt"].map((path) =>
      readFileSync(join(place.folder, path), "utf8"),
    ),
  ).toEqual(["a\n", "dirty\n", "b\n", "u\n", "n\n"]);
  expect((await place.changes(ref))!.files.map(({ path }) => path)).toEqual(["new.txt"]);
  expect(readdirSync(place.folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("a file that changed after the plan was made stays; a link in the way is not followed", async () => {
  using place = new Place();
  place.write({ "a.txt": "a\n", "b.txt": "b\n", "folder/x": "x\n", "d.txt": "d\n" });
  const outside = join(place.root, "outside");
  mkdirSync(outside);
  const ref = await place.note();
  place.write({ "a.txt": "A\n", "b.txt": "B\n", "folder/x": "X\n" });
  rmSync(join(place.folder, "d.txt"));
  symlinkSync(join(outside, "d"), join(place.folder, "d.txt"));
  const plan = await planIn(place, ref);
  expect(plan.left).toEqual([{ path: "d.txt", why: "it is no file any more" }]);
  place.write({ "a.txt": "mine\n" });
  rmSync(join(place.folder, "folder"), { recursive: true });
  writeFileSync(join(outside, "x"), "X\n");
  symlinkSync(outside, join(place.folder, "folder"));
  rmSync(join(place.folder, "b.txt"));
  execFileSync("mkfifo", [join(place.folder, "b.txt")]);
  expect(restoreFiles(plan, place)).toEqual({ restored: [], changed: ["a.txt", "b.txt", "folder/x"] });
  expect(readFileSync(join(place.folder, "a.txt"), "utf8")).toBe("mine\n");
  expect(readFileSync(join(outside, "x"), "utf8")).toBe("X\n");
  expect(existsSync(join(outside, "d"))).toBe(false);
  expect(lstatSync(join(place.folder, "b.txt")).isFIFO()).toBe(true);
});

test("what only git knows how to write is left to git: filters, line endings, links", async () => {
  using place = new Place();
  place.commit({
    "a.lfs": "pointer\n",
    "b.txt": "b\n",
    "c.bin": "c\n",
    ".gitattributes": "*.lfs filter=lfs\n*.txt text\n",
  });
  symlinkSync("c.bin", join(place.folder, "link"));
  place.git("add", "link");
  place.git("commit", "-qm", "link");
  const ref = await place.note();
  for (const path of ["a.lfs", "b.txt", "c.bin", "link"]) {
    rmSync(join(place.folder, path));
    if (path !== "link") place.write({ [path]: "other\n" });
  }
  const plan = await planIn(place, ref);
  expect(plan.files.map(({ path }) => path)).toEqual(["c.bin"]);
  expect(plan.left.map(({ path }) => path)).toEqual(["a.lfs", "b.txt", "link"]);
  place.git("config", "core.autocrlf", "true");
  expect((await planIn(place, ref)).files).toEqual([]);
});

test("modes come back, and what was too large or secret is left", async () => {
  using place = new Place();
  place.rules = { ...place.rules, isSecret: (path) => path.endsWith(".env") };
  place.limits = { ...place.limits, fileBytes: 1_000 };
  place.write({ "run.sh": "#!/bin/sh\n", ".env": "K=1\n", large: "x".repeat(2_000) });
  execFileSync("chmod", ["755", join(place.folder, "run.sh")]);
  const ref = await place.note();
  for (const path of ["run.sh", ".env", "large"]) rmSync(join(place.folder, path));
  const plan = await planIn(place, ref);
  expect(plan.left).toEqual([".env", "large"].map((path) => ({ path, why: "what it held is not known" })));
  restoreFiles(plan, place);
  expect(statSync(join(place.folder, "run.sh")).mode & 0o777).toBe(0o755);
});
