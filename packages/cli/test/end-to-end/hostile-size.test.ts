import { shownAddress } from "holdfast/address";
import { describe, expect, test } from "vitest";
import { explainModelError, isWindowError } from "../../src/models/explain.ts";
import { filesFound, hasPassed, isCut, isPart, parseListedFiles } from "../../src/models/offline/evidence/output.ts";
import { failureIn } from "../../src/models/offline/failures.ts";
import { jobOf } from "../../src/models/offline/tasks.ts";
import { parseSlashCommand } from "../../src/screen/input/slash-commands.ts";
import { advanceStream, EMPTY_STREAM } from "../../src/screen/lines/markdown-stream.ts";
import { decide } from "../../src/tools/permission/decide.ts";
import { commandEnvironment } from "../../src/tools/shell/environment.ts";
import { withoutPasswords } from "../../src/without-passwords.ts";

/**
 * A model, a server, a stored prompt or a variable can be a megabyte long, and made of whatever is hardest to read.
 * Each of these took minutes to years at this size, since an expression in it went back over the text from every
 * character; now they end within the usual time limit of a test. Nothing is timed: what grows with the square again
 * does not end.
 */
const MEGABYTE = 1_000_000;
const of = (piece: string): string => piece.repeat(Math.ceil(MEGABYTE / piece.length));

const judge = (name: string, input: unknown): string =>
  decide(
    { name, input },
    {
      cwd: "/work",
      home: "/home/me",
      store: "/home/me/store",
      policy: {
        allow: ["read(src/**)", "shell(git *)", "shell"],
        ask: [],
        deny: ["shell(git push)", "read(**/zz/**)"],
      },
      platform: "linux",
    },
  ).verdict;

describe("a megabyte", () => {
  test.each(["~", "1 ", "-", ".", " ", ".bak", "1", "adminsdk", "-service-account", "a/", "../", "a:"])(
    "as a path of %j: asked about",
    (piece) => {
      for (const path of [of(piece), `${of(piece)}x`]) {
        expect(judge("read", { path })).toBe("ask");
        expect(judge("write", { path, content: "" })).toBe("ask");
      }
    },
  );

  test.each(["x git;", "git -a ", "g*t -a ", "x 'git push' ", "env ", "rm -a ;", ">/dev/null "])(
    "as a command of %j: not allowed",
    (piece) => {
      expect(judge("shell", { command: of(piece) })).not.toBe("allow");
    },
  );

  test.each(["a://", "http://", "a:", "@", "=", "key", "?key", "a b=", "://"])("as a variable of %j", (piece) => {
    expect(commandEnvironment({ LC_ALL: `${of(piece)}\nx://me:secret@host` })).toEqual({});
    expect(Object.keys(commandEnvironment({ LC_ALL: of("a") }))).toEqual(["LC_ALL"]);
  });

  test.each(["a", "?", "?key", "?%=", "&", "a://b:", "http://", "sk-aaaaaaaa", "exceeds the maximum ", " "])(
    "as an error of a server, made of %j",
    (piece) => {
      const error = Object.assign(new Error(of(piece)), { statusCode: 500 });
      expect(explainModelError(error, "x/y").message.length).toBeLessThan(500);
      expect(isWindowError({ message: of(piece), statusCode: 400 })).toBe(false);
      expect(withoutPasswords(`${of(piece)} x://me:secret@host`)).not.toContain("secret");
      expect(shownAddress(`postgres://${of(piece)}?password=hidden`)).not.toContain("hidden");
    },
  );

  const TASKS = [
    ...["rename", "rename a to b", "replace a with b in", "count", "count words in", "edit a: replace", "in a replace"],
    ...['edit a: replace "a', "write", "append a:", "run", "run a (makes", "list"],
    ...["search for a", "read a", "delegate", "1. a", "tell a story of ", "think about a", "fail: ", "hang", "please"],
  ];
  test.each([" ", ".", "a to b in ", '" with "', "1", "a:", " (makes a", "- ", "with ", ", then"])(
    "of %j behind each task of the offline model",
    (piece) => {
      for (const task of TASKS) for (const end of ["x", "\nx"]) jobOf(`${task}${of(piece).slice(0, 100_000)}${end}`);
      expect(jobOf(`rename${of(piece)}x`)).toBeDefined();
      for (const task of TASKS) failureIn(`${task}${of(piece)},`);
    },
    30_000,
  );

  test.each(["only the first 1 [", "[exit status 1 ", "[", "\n[Lines 1 to 1 of 1", "\n[… 1 a left out here; ", ":1"])(
    "of %j as an answer that the offline model reads",
    (piece) => {
      const answer = `${of(piece)}x`;
      expect([isCut(answer), isPart(answer), hasPassed(answer)]).toEqual([false, false, true]);
      expect([...filesFound(answer), ...parseListedFiles(answer, ".")].length).toBeGreaterThan(0);
    },
  );

  test("of blanks behind a slash command, and a fence without an end", () => {
    expect(parseSlashCommand(`/rename${of(" ")}\nx`)).toEqual({ kind: "prompt" });
    expect(parseSlashCommand(`/rename${of(" ")}x`)).toEqual({ kind: "command", name: "rename", argument: "x" });
    expect(advanceStream(EMPTY_STREAM, of("`"), 80, 20).live.length).toBeGreaterThan(0);
  });
});

test("the answers of the agent's tools are still read", () => {
  expect(isCut("a:1: x\n[only the first 500 lines are shown: use a more specific pattern; 3 files skipped.]")).toBe(
    true,
  );
  expect(isCut("[only the first 5 lines] are here")).toBe(false);
  expect(hasPassed("no\n[exit status 1; no output]")).toBe(false);
  expect(hasPassed("[exit status 1]\nand then it went on")).toBe(true);
});

test.each([
  ["rename  old name to new name in the folder src.", "rename old name to new name in src"],
  ["replace a with b by c in src", "rename a to b by c in src"],
  ["list the files in folder src.", "list src"],
  ["list", "list ."],
  ["list ..", "list .."],
  ["search for a  b in src", "search for a  b in src"],
  ["search for x in .", "search for x in ."],
  ["search for a.b.", "search for a.b in ."],
])("%j is understood", (prompt, title) => {
  expect(jobOf(prompt).title).toBe(title);
});

test.each([
  ["fail: 500", "status", ""],
  ["fail: cut after 3 words.", "cut", ""],
  ["hang after 5 words, then: write a.txt: x", "hang", "write a.txt: x"],
  ["fail: 503 , then : run ls.", "status", "run ls."],
])("%j fails", (prompt, kind, task) => {
  expect(failureIn(prompt)).toMatchObject({ failure: { kind }, task });
});
