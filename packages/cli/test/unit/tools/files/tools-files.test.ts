import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { constants } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import { editFile } from "../../../../src/tools/files/edit.ts";
import { listFolder } from "../../../../src/tools/files/list.ts";
import { readText } from "../../../../src/tools/files/read.ts";
import { search } from "../../../../src/tools/files/search.ts";
import { isStaleWrite } from "../../../../src/tools/files/stale-writes.ts";
import { temporaryFor } from "../../../../src/tools/files/temporary-files.ts";
import { replaceFile, writeFile } from "../../../../src/tools/files/write.ts";
import { describeSystemError } from "../../../../src/tools/results/system-errors.ts";
import { makeTools, REPLAY } from "../../../../src/tools/tools.ts";

let here: ReturnType<typeof place>;
let cwd: string;
beforeEach(() => {
  here = place();
  cwd = join(realpathSync(here.path), "work");
  mkdirSync(cwd);
});
afterEach(() => here[Symbol.dispose]());

const put = (name: string, content: string | Uint8Array): string => {
  const path = join(cwd, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
  return path;
};
const text = (name: string): string => readFileSync(join(cwd, name), "utf8");

test("the tools have the names, the inputs and the replay policies that are promised", async () => {
  const context = {
    cwd,
    outputs: join(here.path, "outputs"),
    process: async () => {},
    output: () => {},
    env: process.env,
  };
  const tools = makeTools(context);
  expect(Object.keys(tools).sort()).toEqual(Object.keys(REPLAY).sort());
  const safe = { read: "safe", list: "safe", search: "safe", write: "safe", plan: "safe" };
  expect(REPLAY).toEqual({ ...safe, edit: "never", shell: "never" });
  put("a.txt", "one\n");
  const options = { toolCallId: "c", messages: [], context: {} } as never;
  expect(await tools.read.execute!({ path: "a.txt" }, options)).toBe("one\n");
  expect(await tools.list.execute!({}, options)).toBe("a.txt");
  expect(await tools.search.execute!({ pattern: "o.e" }, options)).toBe("a.txt:1: one");
  expect(await tools.shell.execute!({ command: "cat a.txt" }, options)).toBe("one\n");
});

describe("read", () => {
  test("a text comes back as it stands, with or without a line end, and without line numbers", async () => {
    for (const content of ["one\n\n  two\n", "one\ntwo", "\n", "ä€😀\r\nx\n"]) {
      put("a", content);
      expect(await readText({ cwd }, { path: "a" })).toBe(content);
    }
    put("empty", "");
    expect(await readText({ cwd }, { path: "empty" })).toBe("[empty is empty.]");
  });

  test("a part of it, and how to read on", async () => {
    put("a", Array.from({ length: 10 }, (_, at) => `line ${at + 1}\n`).join(""));
    const part = await readText({ cwd }, { path: "a", offset: 3, limit: 2 });
    expect(part).toBe("line 3\nline 4\n[Lines 3 to 4 of 10; read on with offset 5.]");
    expect(await readText({ cwd }, { path: "a", offset: 9 })).toBe("line 9\nline 10\n[Lines 9 to 10 of 10.]");
    await expect(readText({ cwd }, { path: "a", offset: 11 })).rejects.toThrow("a has 10 lines: there is no line 11.");
  });

  test("C28: a huge file and a huge line are bounded, without a hole, and every line can be reached", async () => {
    const all = Array.from({ length: 30_000 }, (_, at) => `${at} ${"x".repeat(at % 50)}`);
    put("big", `${all.join("\n")}\n`);
    const seen: string[] = [];
    for (let offset = 1; offset <= all.length; ) {
      const page = await readText({ cwd }, { path: "big", offset });
      expect(page.length).toBeLessThan(40_000);
      const lines = page.split("\n").slice(0, -1);
      seen.push(...lines);
      offset += lines.length;
    }
    expect(seen).toEqual(all);
    put("wide", `${"é".repeat(300_000)}😀\nnext\n`);
    const wide = await readText({ cwd }, { path: "wide" });
    expect(wide).toContain("1 line cut at 2000 characters");
    expect(wide).toContain("\nnext\n");
  });

  test("stop ends the reading of a file", async () => {
    put("a.txt", "line\n".repeat(200_000));
    const stop = new AbortController();
    const reading = readText({ cwd }, { path: "a.txt" }, stop.signal);
    stop.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
  });

  test("what is not text is said to be what it is", async () => {
    put("a.png", new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 1]));
    put("b.bin", new Uint8Array([65, 0, 66]));
    expect(await readText({ cwd }, { path: "a.png" })).toContain("a PNG image of 6 bytes");
    expect(await readText({ cwd }, { path: "b.bin" })).toContain("a binary file of 3 bytes");
    await expect(readText({ cwd }, { path: "." })).rejects.toThrow("is a folder");
    await expect(readText({ cwd }, { path: "none" })).rejects.toThrow("none does not exist.");
    await expect(readText({ cwd }, { path: "/dev/zero" })).rejects.toThrow("is not a regular file");
    execFileSync("mkfifo", [join(cwd, "pipe")]);
    await expect(readText({ cwd }, { path: "pipe" }), "it would wait for ever").rejects.toThrow(
      "is not a regular file",
    );
  });
});

describe("write", () => {
  test("makes folders and files, keeps the mode of what was there, and leaves nothing else behind", async () => {
    expect(await writeFile({ cwd }, { path: "a/b/c.txt", content: "é" })).toBe("Created a/b/c.txt (2 bytes).");
    const script = put("run.sh", "old");
    chmodSync(script, 0o751);
    expect(await writeFile({ cwd }, { path: "run.sh", content: "new" })).toBe("Replaced run.sh (3 bytes).");
    expect(statSync(script).mode & 0o777).toBe(0o751);
    expect(text("run.sh")).toBe("new");
    expect(readdirSync(cwd).sort()).toEqual(["a", "run.sh"]);
  });

  test("what is behind a symbolic link is written, also where there is nothing yet, and the link stays", async () => {
    put("real.txt", "old");
    symlinkSync("real.txt", join(cwd, "link"));
    symlinkSync("made.txt", join(cwd, "dangling"));
    await writeFile({ cwd }, { path: "link", content: "new" });
    await writeFile({ cwd }, { path: "dangling", content: "made" });
    expect([text("real.txt"), text("made.txt")]).toEqual(["new", "made"]);
    expect(readlinkSync(join(cwd, "link"))).toBe("real.txt");
  });

  test("it is one instant for whoever holds the old file open", async () => {
    const path = put("a", "old");
    const before = statSync(path).ino;
    await writeFile({ cwd }, { path: "a", content: "new" });
    expect(statSync(path).ino, "another file took its place").not.toBe(before);
  });

  test("a file stays its owner's, also if root writes it", async (context) => {
    if (process.getuid?.() !== 0) return context.skip();
    const path = put("a.txt", "one\n");
    chownSync(path, 65534, 65534);
    chmodSync(path, 0o640);
    await editFile({ cwd }, { path: "a.txt", old: "one", new: "two" });
    expect(statSync(path)).toMatchObject({ uid: 65534, gid: 65534 });
    expect(statSync(path).mode & 0o7777).toBe(0o640);
  });

  test("what a killed agent left of a write is removed by the next one; what others are at work on is not", async () => {
    const name = basename(temporaryFor(join(cwd, "a")));
    const of = (pid: number, life: string): string => name.replace(/-\d+-[0-9a-f]{8}-/u, `-${pid}-${life}-`);
    const dead = spawnSync("true").pid;
    put(of(dead, "00000000"), "half");
    put(of(process.pid, "00000000"), "of an earlier process with this pid");
    put(of(process.ppid, "00000000"), "of one that lives");
    put(name.replace(/^(\.holdfast-)[0-9a-f]{8}-\d+/u, `$1ffffffff-${dead}`), "of another machine");
    expect(await listFolder({ cwd }, {}), "they are nobody's files").toBe("[. contains nothing to list.]");
    await writeFile({ cwd }, { path: "a", content: "x" });
    const left = readdirSync(cwd).map((one) => (one === "a" ? text(one) : text(one).replace("of ", "")));
    expect(left.sort()).toEqual(["another machine", "one that lives", "x"]);
    expect(temporaryFor("/a"), "no two have the same").not.toBe(temporaryFor("/a"));
  });

  test("what cannot be removed of what a killed agent left fails no write", async () => {
    const name = basename(temporaryFor(join(cwd, "a")));
    const left = name.replace(/-\d+-[0-9a-f]{8}-/u, `-${spawnSync("true").pid}-00000000-`);
    // As another user's file in a folder for all: it is not for us to remove.
    mkdirSync(join(cwd, left));
    expect(await writeFile({ cwd }, { path: "a", content: "x" })).toBe("Created a (1 bytes).");
    expect(readdirSync(cwd).sort()).toEqual([left, "a"]);
  });

  test("a folder, or a way through a file, is refused in words", async () => {
    put("a/b", "x");
    await expect(writeFile({ cwd }, { path: "a", content: "" })).rejects.toThrow("a is a folder.");
    await expect(writeFile({ cwd }, { path: "a/b/c", content: "" })).rejects.toThrow(
      /a\/b\/c has a parent that is not a folder/u,
    );
    expect(text("a/b")).toBe("x");
  });
});

describe("edit", () => {
  test("replaces the one place, as plain text, and keeps the mode", async () => {
    const path = put("a", "const a = 1;\nconst b = 2;\n");
    chmodSync(path, 0o600);
    const said = await editFile({ cwd }, { path: "a", old: "b = 2", new: "b = $&$1" });
    expect(said).toBe("Changed a: 1 place, starting at line 2.");
    expect(text("a")).toBe("const a = 1;\nconst b = $&$1;\n");
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("several places only with `all`", async () => {
    put("a", "x\nx\ny x\n");
    await expect(editFile({ cwd }, { path: "a", old: "x", new: "z" })).rejects.toThrow(
      "3 times in a, at lines 1, 2, 3",
    );
    expect(text("a")).toBe("x\nx\ny x\n");
    await editFile({ cwd }, { path: "a", old: "x", new: "z", all: true });
    expect(text("a")).toBe("z\nz\ny z\n");
  });

  test.each([
    ["not there", { old: "none", new: "z" }, "is not in a. Nothing was changed"],
    ["applied already", { old: "beta", new: "alpha" }, "may have been applied already"],
    ["other blanks", { old: "alpha  gamma", new: "z" }, "whitespace or line endings differ"],
    ["no change", { old: "alpha", new: "alpha" }, "are the same"],
    ["nothing to look for", { old: "", new: "z" }, "is empty"],
  ])("%s: it says so, and changes nothing", async (_name, input, words) => {
    put("a", "alpha gamma\n");
    await expect(editFile({ cwd }, { path: "a", ...input })).rejects.toThrow(words);
    expect(text("a")).toBe("alpha gamma\n");
  });

  test("a file with line ends of Windows keeps them", async () => {
    put("a", "one\r\ntwo\r\nthree\r\n");
    await editFile({ cwd }, { path: "a", old: "one\ntwo", new: "1\n2" });
    expect(text("a")).toBe("1\r\n2\r\nthree\r\n");
  });

  test("lines that are put into a file with line ends of Windows get those, too", async () => {
    put("a.txt", "one\r\ntwo\r\n");
    await editFile({ cwd }, { path: "a.txt", old: "one", new: "one\nand a half" });
    expect(text("a.txt")).toBe("one\r\nand a half\r\ntwo\r\n");
    put("mixed.txt", "one\r\ntwo\n");
    await editFile({ cwd }, { path: "mixed.txt", old: "one", new: "one\nand a half" });
    expect(text("mixed.txt")).toBe("one\nand a half\r\ntwo\n");
  });

  test("a byte-order mark and a last line without an end stay as they are", async () => {
    put("a.txt", "\uFEFFone\ntwo");
    await editFile({ cwd }, { path: "a.txt", old: "one\ntwo", new: "three" });
    expect(text("a.txt")).toBe("\uFEFFthree");
  });

  test("what somebody else writes meanwhile is not lost", async () => {
    const path = put("a.txt", "one\n");
    const replaced = replaceFile(path, Buffer.from("mine\n"), () => {
      throw new Error("changed");
    });
    await expect(replaced).rejects.toThrow("changed");
    expect(text("a.txt")).toBe("one\n");
    expect(readdirSync(cwd)).toEqual(["a.txt"]);
    // Between what the tool reads and what it writes: the temporary file is there.
    const edited = editFile({ cwd }, { path: "a.txt", old: "one", new: "x".repeat(30_000_000) });
    while (readdirSync(cwd).length < 2) await new Promise((next) => setImmediate(next));
    writeFileSync(path, "theirs one\n");
    await expect(edited).rejects.toThrow("changed by another process");
    expect(text("a.txt")).toBe("theirs one\n");
  });

  test("bytes that are not UTF-8 are not touched", async () => {
    const bytes = new Uint8Array([0x61, 0xff, 0x62]);
    put("a", bytes);
    await expect(editFile({ cwd }, { path: "a", old: "a", new: "b" })).rejects.toThrow("not UTF-8 text");
    expect(new Uint8Array(readFileSync(join(cwd, "a")))).toEqual(bytes);
  });

  test("several edits of one file in one breath all count", async () => {
    put("a", "1\n2\n3\n4\n");
    const edits = ["1", "2", "3", "4"].map((old) => editFile({ cwd }, { path: "a", old, new: `<${old}>` }));
    await Promise.all([...edits, editFile({ cwd }, { path: "./a", old: "none", new: "x" }).catch(() => "refused")]);
    expect(text("a")).toBe("<1>\n<2>\n<3>\n<4>\n");
  });
});

describe("list and search", () => {
  test("folders near before deep, without .git and node_modules, links named and not followed", async () => {
    for (const name of ["b.txt", "a/x.ts", "a/deep/y.ts", ".git/config", "node_modules/m/i.js"]) put(name, "");
    symlinkSync("/etc", join(cwd, "out"));
    const listed = await listFolder({ cwd }, {});
    expect(listed.split("\n")).toEqual(["a/", "b.txt", "out@", "a/deep/", "a/x.ts", "a/deep/y.ts"]);
    expect(await listFolder({ cwd }, { path: "a/deep" })).toBe("y.ts");
    await expect(listFolder({ cwd }, { path: "none" })).rejects.toThrow("none does not exist.");
  });

  test("C25: names with line ends and escape sequences stay on their line", async () => {
    put("a\n\u001b[2Jb", "");
    expect(await listFolder({ cwd }, {})).toBe("a\uFFFD\uFFFD[2Jb");
  });

  test("many files are bounded, and it says so", async () => {
    for (let at = 0; at < 1100; at++) writeFileSync(join(cwd, `f${at}`), "");
    const listed = await listFolder({ cwd }, {});
    expect(listed.split("\n")).toHaveLength(1001);
    expect(listed).toContain("only the first 1000 are shown");
  });

  test("finds lines by a regular expression; binaries, links out and secrets are not read", async () => {
    put("a.ts", "let x = 1;\r\nlet yy = 22;\n");
    put("b/c.ts", "nothing\nlet zzz = 333;");
    put("bin", new Uint8Array([0, ...Buffer.from("let b = 1")]));
    put(".env", "let secret = 1");
    const outside = join(here.path, "outside");
    writeFileSync(outside, "let out = 1");
    symlinkSync(outside, join(cwd, "link"));
    const found = await search({ cwd }, { pattern: "let \\w+ = \\d{2,}" });
    expect(found.split("\n").slice(0, 2)).toEqual(["a.ts:2: let yy = 22;", "b/c.ts:2: let zzz = 333;"]);
    const all = await search({ cwd }, { pattern: "let" });
    expect(all).not.toMatch(/secret =|out =|b = 1/u);
    expect(all).toContain("1 files skipped: not text, or too large; 1 skipped");
    expect(await search({ cwd }, { pattern: "secret", path: ".env" }), "asked for by name").toContain(".env:1:");
    expect(await search({ cwd }, { pattern: "let", path: "b" })).toBe("b/c.ts:2: let zzz = 333;");
    expect(await search({ cwd }, { pattern: "not there" })).toContain("[Nothing found.]");
    await expect(search({ cwd }, { pattern: "(" })).rejects.toThrow("not a regular expression");
  });

  test("a pattern that would take for ever is ended, and what was found until then is told", async () => {
    put("a.txt", "found\n");
    put("b.txt", `${"a".repeat(5000)}!\n`);
    const found = await search({ cwd }, { pattern: "found|^(a+)+$" }, undefined, 1);
    expect(found).toContain("a.txt:1: found");
    expect(found).toContain("ended after 1 s");
    const stop = new AbortController();
    const stopped = search({ cwd }, { pattern: "^(a+)+$" }, stop.signal);
    stop.abort();
    await expect(stopped).rejects.toThrow(/stopped|aborted/u);
  });

  test("a pipe is not waited for, in a folder or by its name", async () => {
    put("a.txt", "one\n");
    execFileSync("mkfifo", [join(cwd, "pipe")]);
    expect(await search({ cwd }, { pattern: "one" })).toBe("a.txt:1: one");
    await expect(search({ cwd }, { pattern: "one", path: "pipe" })).rejects.toThrow("was not searched");
  });

  test("many hits are bounded, and it says so", async () => {
    put("a", "x\n".repeat(5000));
    const found = await search({ cwd }, { pattern: "x" });
    expect(found.split("\n")).toHaveLength(501);
    expect(found).toContain("only the first 500 lines are shown");
    expect(existsSync(join(cwd, "a"))).toBe(true);
  });
});

describe("what has no end, or is no file", () => {
  test("devices, sockets, files of the kernel: each tool says no, or what it can, and comes back", async (context) => {
    if (process.platform !== "linux") context.skip("not run: needs /dev and /proc of Linux");
    const socket = createServer().listen(join(cwd, "socket"));
    symlinkSync("/dev/zero", join(cwd, "zero"));
    symlinkSync("/proc/kmsg", join(cwd, "kmsg"));
    put("a.txt", "needle\n");
    for (const path of ["/dev/zero", "/dev/tty", "/dev/full", "zero", "socket"]) {
      await expect(readText({ cwd }, { path }), path).rejects.toThrow(/is not a regular file|cannot be accessed/);
      await expect(search({ cwd }, { path, pattern: "x" }), path).rejects.toThrow(
        /is not a regular file|cannot be accessed/,
      );
      await expect(editFile({ cwd }, { path, old: "a", new: "b" }), path).rejects.toThrow();
      await expect(writeFile({ cwd }, { path, content: "b" }), path).rejects.toThrow(/device, pipe or socket/);
    }
    const bare = { cwd, passOver: () => false };
    for (const path of ["kmsg", "/proc/self/maps", "/proc/self/pagemap", "/proc/version", "/sys/kernel/notes"]) {
      const read = await readText({ cwd }, { path }).catch((error: Error) => error.message);
      expect(read.length, path).toBeLessThan(100_000);
      const found = await search(bare, { path, pattern: "zzzz" }).catch((error: Error) => error.message);
      expect(found.length, path).toBeLessThan(100_000);
      await expect(editFile({ cwd }, { path, old: "zzzz", new: "b" }), path).rejects.toThrow();
    }
    expect(await search(bare, { pattern: "needle" })).toContain("a.txt:1: needle");
    socket.close();
  });

  test("a sparse file of a terabyte is not read", async () => {
    truncateSync(put("huge", ""), 2 ** 40);
    expect(await readText({ cwd }, { path: "huge" })).toContain("is a binary file");
    expect(await search({ cwd }, { pattern: "x" })).toContain("1 files skipped");
    await expect(editFile({ cwd }, { path: "huge", old: "a", new: "b" })).rejects.toThrow("too large to edit");
  });

  test("of a text that is very long, lines are counted only so far; any line that is near enough is found", async () => {
    put("long", "line\n".repeat(400_000));
    const limits = { countedBytesMax: 300_000, searchedBytesMax: 1_000_000 };
    const first = await readText({ cwd }, { path: "long", limit: 2 }, undefined, limits);
    expect(first).toMatch(/^line\nline\n\[Lines 1 to 2 of more than \d{5,6}; read on with offset 3\.\]$/);
    const far = await readText({ cwd }, { path: "long", offset: 150_000, limit: 1 }, undefined, limits);
    expect(far).toMatch(/^line\n\[Lines 150000 to 150000 of more than \d+; read on with offset 150001\.\]$/);
    const farther = readText({ cwd }, { path: "long", offset: 390_000 }, undefined, limits);
    await expect(farther).rejects.toThrow(
      /has more than \d+ lines, too many to count: there is no line 390000 among them/,
    );
    expect(await readText({ cwd }, { path: "long", offset: 399_999 })).toContain("[Lines 399999 to 400000 of 400000.]");
  });

  test("a pipe in the place of a file that was written is not waited for", async () => {
    const call = {
      ...{ id: "c", message: null, name: "write", input: { path: "pipe", content: "" } },
      ...{ state: "outcome-unknown" as const, startedAt: "2020-01-01T00:00:00.000Z" },
    };
    execFileSync("mkfifo", [join(cwd, "pipe")]);
    expect(await isStaleWrite(cwd, call)).toBe(false);
    put("file", "mine");
    expect(await isStaleWrite(cwd, { ...call, input: { path: "file", content: "mine" } })).toBe(false);
    expect(await isStaleWrite(cwd, { ...call, input: { path: "file", content: "hers" } })).toBe(true);
  });

  test("a folder of very many names: the first ones, and that there are more", async () => {
    for (let i = 0; i < 1200; i++) put(`many/${i}`, "");
    expect(await listFolder({ cwd }, {})).toMatch(/only the first 1000 are shown/);
    const stopped = new AbortController();
    stopped.abort();
    await expect(listFolder({ cwd }, {}, stopped.signal)).rejects.toThrow();
  });
});

test("the model is told of a used-up quota, which Node has no name for", () => {
  const thrown = Object.assign(new Error("UNKNOWN: unknown error, write"), {
    code: "UNKNOWN",
    errno: -constants.errno.EDQUOT,
  });
  expect(describeSystemError(thrown, "a.txt").message).toBe("a.txt could not be written: the disk quota is used up.");
});
