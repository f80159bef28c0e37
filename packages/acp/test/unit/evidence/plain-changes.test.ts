import { execFileSync } from "node:child_process";
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { noteFrom, noteText } from "../../../src/evidence/note.ts";
import { Place, summary } from "./git-folder.ts";

test("without git: all files of a small folder", async () => {
  using place = new Place();
  place.write({ "a.txt": "a\n", "b/c.txt": "c\n", "node_modules/x.js": "x\n" });
  const ref = await place.note();
  expect(await place.changes(ref)).toEqual({ files: [], more: 0, gap: null });
  place.write({ "b/c.txt": "c\nd\n", "new.txt": "n\n", "node_modules/y.js": "y\n" });
  rmSync(join(place.folder, "a.txt"));
  expect(summary(await place.changes(ref))).toEqual([
    "a.txt removed +0 -1",
    "b/c.txt changed +1 -0",
    "new.txt new +1 -0",
  ]);
});

test("of a larger one, those that the call names, and that is said", async () => {
  using place = new Place();
  place.limits = { ...place.limits, files: 3 };
  place.write({ a: "1\n", b: "1\n", c: "1\n", d: "1\n" });
  const ref = await place.note([join(place.folder, "a"), join(place.folder, "later")]);
  place.write({ a: "2\n", b: "2\n", later: "l\n" });
  const changes = await place.changes(ref);
  expect(summary(changes)).toEqual(["a changed +1 -1", "later new +1 -0"]);
  expect(changes!.gap).toBe("only the files that the call names were compared");
});

test("a pipe is not opened, no link is followed, and no file that has another name", async () => {
  using place = new Place();
  const outside = join(place.root, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "secret"), "secret\n");
  place.write({ "a.txt": "a\n", "folder/x": "x\n" });
  execFileSync("mkfifo", [join(place.folder, "pipe")]);
  symlinkSync(outside, join(place.folder, "out"));
  linkSync(join(outside, "secret"), join(place.folder, "hard"));
  const ref = await place.note([join(place.folder, "out/secret")]);
  // What was a folder leads out of it now.
  renameSync(join(place.folder, "folder"), join(place.root, "moved"));
  symlinkSync(join(place.root, "moved"), join(place.folder, "folder"));
  writeFileSync(join(outside, "secret"), "changed\n");
  writeFileSync(join(place.root, "moved/x"), "y\n");
  const changes = await place.changes(ref);
  expect(summary(changes)).toEqual(["folder new", "folder/x changed", "hard changed"]);
  expect(changes!.files.every(({ diff }) => diff === undefined)).toBe(true);
  for (const name of readdirSync(place.notes))
    expect(readFileSync(join(place.notes, name), "utf8")).not.toBe("secret\n");
});

test("files with secrets are compared by size and time: their bytes are neither kept nor shown; what is left out is not looked at", async () => {
  using place = new Place();
  place.rules = { isLeftOut: (path) => path.includes("/store"), isSecret: (path) => path.endsWith(".env") };
  place.write({ ".env": "KEY=1\n", "store/journal": "1\n", "a.txt": "a\n" });
  const ref = await place.note();
  expect(readdirSync(place.notes)).toHaveLength(2);
  place.write({ ".env": "KEY=12\n", "store/journal": "2\n", "store/more": "3\n" });
  expect((await place.changes(ref))!.files).toEqual([{ path: ".env", change: "changed" }]);
});

test("large and binary files are named without their lines; a long difference is shortened", async () => {
  using place = new Place();
  place.limits = { ...place.limits, fileBytes: 100_000 };
  place.write({ large: "x".repeat(200_000), binary: "a\0b", long: "" });
  const ref = await place.note();
  place.write({ large: "y".repeat(200_001), binary: "a\0c", long: "line\n".repeat(2_000) });
  const { files } = (await place.changes(ref))!;
  expect(files.map(({ path, lines }) => [path, lines])).toEqual([
    ["binary", undefined],
    ["large", undefined],
    ["long", { added: 2_000, removed: 0 }],
  ]);
  expect(files[2]!.diff!.at(-1)).toEqual({ kind: "gap", text: "… 1200 more lines" });
});

test("a note that is missing, damaged or not one is no note", async () => {
  using place = new Place();
  place.write({ "a.txt": "a\n" });
  const ref = (await place.note())!;
  expect(await place.changes({ folder: "0".repeat(64) })).toBeNull();
  expect(await place.changes({ folder: "../../a" })).toBeNull();
  const path = join(place.notes, ref.folder);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace("a.txt", "b.txt"));
  expect(await place.changes(ref)).toBeNull();
  rmSync(path);
  symlinkSync("/etc/passwd", path);
  expect(await place.changes(ref)).toBeNull();
  const note = noteFrom(text)!;
  expect(noteFrom(noteText(note))).toEqual(note);
  for (const bad of ["../x", "/etc/passwd", "a//b", ".git/config", "a/.GIT/x", "", "a\0b", "a\\..\\b"])
    expect(noteFrom(noteText({ ...note, files: new Map([[bad, { kind: "absent" }]]) }))).toBeNull();
  for (const bad of ["", "null", "[]", "{}", '{"v":1}', "{"]) expect(noteFrom(bad)).toBeNull();
});

test("what the notes of earlier calls have kept is removed, unless it is still needed", async () => {
  using place = new Place();
  place.write({ "a.txt": "a\n" });
  const first = (await place.note())!;
  place.write({ "a.txt": "b\n" });
  const second = (await place.note())!;
  expect(await place.changes(first)).toBeNull();
  expect(summary(await place.changes(second))).toEqual([]);
  expect(readdirSync(place.notes)).toHaveLength(2);
});

test("a folder that is gone, or a place for notes that cannot be made, is not noted", async () => {
  using place = new Place();
  expect(await place.note([], join(place.folder, "nothing"))).toBeNull();
  writeFileSync(place.notes, "a file");
  expect(await place.note()).toBeNull();
});
