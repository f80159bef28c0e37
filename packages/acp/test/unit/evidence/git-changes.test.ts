import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Place, summary } from "./git-folder.ts";

test("in a git work tree: nothing has changed, or these files, with their differences", async () => {
  using place = new Place();
  place.commit({ "a.txt": "one\ntwo\nthree\n", "gone.txt": "x\n", "same.txt": "s\n" });
  // What differed before is not counted as a change, and its later change is shown against it.
  place.write({ "a.txt": "one\ntwo\nthree\ndirty\n", "untracked.txt": "u\n" });
  const ref = await place.note();
  expect(await place.changes(ref)).toEqual({ files: [], more: 0, gap: null });
  place.write({ "a.txt": "one\ntwo\nthree\ndirty\nmore\n", "b/new.txt": "n\n" });
  rmSync(join(place.folder, "gone.txt"));
  const changes = await place.changes(ref);
  expect(summary(changes)).toEqual(["a.txt changed +1 -0", "b/new.txt new +1 -0", "gone.txt removed +0 -1"]);
  expect(changes!.files[0]!.diff!.filter(({ kind }) => kind !== "same")).toEqual([
    { kind: "gap", text: "… 1 equal line" },
    { kind: "added", text: "more" },
  ]);
});

test("a commit made since then: what it changed is shown, and what was only committed is not", async () => {
  using place = new Place();
  place.commit({ "a.txt": "one\n", "b.txt": "b\n" });
  place.write({ "a.txt": "two\n", "late.txt": "l\n" });
  const ref = await place.note();
  place.write({ "b.txt": "b\nb\n", "c.txt": "c\n" });
  place.git("add", "-A");
  place.git("commit", "-qm", "second");
  expect(summary(await place.changes(ref))).toEqual(["b.txt changed +1 -0", "c.txt new +1 -0"]);
  // Everything is taken back.
  place.git("reset", "-q", "--hard", "HEAD~1");
  expect(summary(await place.changes(ref))).toEqual(["a.txt changed +1 -1", "late.txt removed +0 -1"]);
});

test("before the first commit, with modes and links", async () => {
  using place = new Place();
  place.git("init", "-q");
  place.write({ "run.sh": "#!/bin/sh\n" });
  symlinkSync("run.sh", join(place.folder, "link"));
  const ref = await place.note();
  chmodSync(join(place.folder, "run.sh"), 0o755);
  rmSync(join(place.folder, "link"));
  symlinkSync("/etc", join(place.folder, "link"));
  expect(summary(await place.changes(ref))).toEqual(["link changed", "run.sh changed +0 -0"]);
});

test("only the folder counts, and a file in it that git ignores if the call names it", async () => {
  using place = new Place();
  place.commit({ ".gitignore": "*.log\n", "part/a.txt": "a\n", "other/b.txt": "b\n" });
  place.write({ "part/x.log": "1\n" });
  const part = join(place.folder, "part");
  const ref = await place.note([join(part, "x.log"), "/etc/passwd"], part);
  place.write({ "part/x.log": "1\n2\n", "part/a.txt": "A\n", "part/y.log": "y\n", "other/b.txt": "B\n" });
  expect(summary(await place.changes(ref, part))).toEqual(["part/a.txt changed +1 -1", "part/x.log changed +1 -0"]);
  // A note of another folder does not count.
  expect(await place.changes(ref, join(place.folder, "other"))).toBeNull();
});

test("a repository cannot make git run anything: no filter, monitor, hook or external diff, and nothing is written", async () => {
  using place = new Place();
  place.commit({ "a.txt": "a\n", ".gitattributes": "*.txt filter=evil diff=evil\n*.md filter=e=vil\n", "b.md": "b\n" });
  const ran = join(place.root, "ran");
  const evil = `sh -c 'touch ${ran}; cat'`;
  for (const kind of ["clean", "smudge", "process"]) {
    place.git("config", `filter.evil.${kind}`, evil);
    place.git("config", `filter.e=vil.${kind}`, evil);
  }
  place.git("config", "filter.evil.required", "true");
  place.git("config", "diff.evil.command", evil);
  place.git("config", "diff.evil.textconv", evil);
  place.git("config", "diff.external", evil);
  place.git("config", "core.fsmonitor", evil);
  place.git("config", "core.pager", evil);
  place.git("config", "core.sshCommand", evil);
  const hooks = join(place.root, "hooks");
  mkdirSync(hooks);
  for (const hook of ["post-index-change", "fsmonitor-watchman", "post-checkout"])
    writeFileSync(join(hooks, hook), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
  place.git("config", "core.hooksPath", hooks);
  // The same files with other times: git has to compare what is in them.
  for (const name of ["a.txt", "b.md"]) writeFileSync(join(place.folder, name), `${name[0]}\n`);
  rmSync(ran, { force: true });
  const index = readFileSync(join(place.folder, ".git/index"));
  const ref = await place.note();
  place.write({ "a.txt": "A\n" });
  expect(summary(await place.changes(ref))).toContain("a.txt changed +1 -1");
  expect(existsSync(ran)).toBe(false);
  expect(readFileSync(join(place.folder, ".git/index")).equals(index)).toBe(true);
  // The trap works: git itself runs it.
  place.write({ "a.txt": "AA\n" });
  expect(() => place.git("status")).not.toThrow();
  expect(existsSync(ran)).toBe(true);
});

test("a configuration that names another folder is not obeyed", async () => {
  using place = new Place();
  const other = join(place.root, "other");
  mkdirSync(other);
  place.commit({ "a.txt": "a\n" });
  place.git("config", "core.worktree", other);
  const ref = await place.note();
  writeFileSync(join(other, "secret"), "s\n");
  writeFileSync(join(place.folder, "a.txt"), "b\n");
  expect(summary(await place.changes(ref))).toEqual(["a.txt changed +1 -1"]);
});

test("a submodule's configuration is not read", async () => {
  using place = new Place();
  place.commit({ "a.txt": "a\n" });
  const ran = join(place.root, "ran");
  const inner = join(place.folder, "inner");
  mkdirSync(inner);
  const git = (...args: string[]): string =>
    execFileSync("git", ["-C", inner, ...args], { encoding: "utf8", stdio: "pipe" });
  git("init", "-q");
  writeFileSync(join(inner, "x"), "x\n");
  git("add", "x");
  git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x");
  place.git("add", "inner");
  place.git("commit", "-qm", "inner");
  git("config", "core.fsmonitor", `touch ${ran}; true`);
  const ref = await place.note();
  writeFileSync(join(inner, "x"), "y\n");
  expect((await place.changes(ref))!.files).toEqual([]);
  expect(existsSync(ran)).toBe(false);
});

test("10,000 changed files: the first of them are noted, and that is said", async () => {
  using place = new Place();
  place.commit({ "a.txt": "a\n" });
  place.limits = { ...place.limits, files: 100 };
  const many = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, i) => [`many/${String(i).padStart(5, "0")}`, "x\n"]),
  );
  const early = await place.note();
  place.write(many);
  const changes = (await place.changes(early))!;
  expect(changes.files).toHaveLength(50);
  expect(changes.more).toBe(50);
  expect(changes.gap).toBe("more than 100 files differ from the last commit: only 100 were compared");
  const late = await place.note();
  place.write({ "many/00001": "y\n", "many/09999": "y\n", "a.txt": "b\n" });
  const since = (await place.changes(late))!;
  expect(summary(since)).toEqual(["many/00001 changed +1 -1"]);
  expect(since.gap).toBe("more than 100 files differed from the last commit before: only 100 were compared");
});

test("git that takes too long, or is not there: nothing is noted, and a later comparison says why it failed", async () => {
  using place = new Place();
  place.commit({ "a.txt": "a\n" });
  const ref = await place.note();
  const tools = join(place.root, "bin");
  mkdirSync(tools);
  writeFileSync(join(tools, "git"), "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
  const { PATH } = process.env;
  try {
    process.env["PATH"] = `${tools}:${PATH}`;
    place.limits = { ...place.limits, gitMs: 50 };
    expect(await place.note()).toBeNull();
    expect(await place.changes(ref)).toEqual({
      files: [],
      more: 0,
      gap: "it could not be compared: git took longer than 0.05 s",
    });
    process.env["PATH"] = join(place.root, "nothing");
    expect(await place.note()).toBeNull();
    expect((await place.changes(ref))!.gap).toBe("it could not be compared: git cannot be run");
    // A relative folder is one of the repository's.
    process.env["PATH"] = ".";
    writeFileSync(join(place.folder, "git"), `#!/bin/sh\ntouch ${join(place.root, "ran")}\n`, { mode: 0o755 });
    expect(await place.note()).toBeNull();
    expect(readdirSync(place.root)).not.toContain("ran");
  } finally {
    process.env["PATH"] = PATH;
  }
});
