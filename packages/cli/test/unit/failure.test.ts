import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ErrorCode, errorCodes, HoldfastError } from "holdfast";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/config.ts";
import { CommandError, EXIT, exitCodes } from "../../src/exit.ts";
import { exitCodeOf, failureLines, failureOf } from "../../src/failure.ts";
import { makeProgram } from "../../src/main.ts";
import { runChat } from "../../src/screen/run-chat.ts";

test("each code of the library has an exit code of the table", () => {
  for (const code of errorCodes) expect(exitCodes.map(([exit]) => exit)).toContain(exitCodeOf(code));
  expect(exitCodeOf("SESSION_NOT_FOUND")).toBe(EXIT.notFound);
  expect(exitCodeOf("SESSION_BUSY")).toBe(EXIT.busy);
  expect(exitCodeOf("STORE_BUSY")).toBe(EXIT.busy);
  for (const code of ["STORE_FULL", "STORE_FORBIDDEN", "FORMAT_NEWER", "STORE_IO"])
    expect(exitCodeOf(code)).toBe(EXIT.store);
});

test("every exit code is in the table once", () => {
  expect(exitCodes.map(([code]) => code)).toEqual(Object.values(EXIT));
});

test("a busy session: who has it, and what one can do", () => {
  const error = new HoldfastError("SESSION_BUSY", "Session x is being written by app (process 7).", { session: "x" });
  const { exitCode, hints } = failureOf(error);
  expect(exitCode).toBe(EXIT.busy);
  expect(hints.join()).toMatch(/tail -f x.*fork x/);
});

test.each([
  [["--store", "x", "demo"], /"holdfast demo" does not take --store/],
  [["--store", "x", "torture"], /"holdfast torture" does not take --store/],
  [["copy", "a", "b", "--all", "--store", "x"], /"holdfast copy" does not take --store/],
  [["torture", "--kills", "0", "--conversations", "0"], /set --kills or --conversations/],
  [["run", "--continue", "--title", "x", "a prompt"], /--title is for a new session/],
  [["chat", "--resume", "0199", "--title", "x"], /--title is for a new session/],
])("what would be passed over in silence is refused: %j", async (args, words) => {
  const refused = expect.objectContaining({ exitCode: EXIT.usage, message: expect.stringMatching(words) });
  await expect(makeProgram().parseAsync(args, { from: "user" })).rejects.toEqual(refused);
});

test.each([{ resume: true }, { resume: "latest" }, { continue: true }] as const)(
  "where there is no store, no chat makes one to look for a session: %j",
  async (options) => {
    const store = join(tmpdir(), `holdfast-none-${process.pid}`);
    const none = expect.objectContaining({ exitCode: EXIT.notFound, code: "STORE_NOT_FOUND" });
    await expect(runChat(options, loadConfig({ store }))).rejects.toEqual(none);
    expect(existsSync(store)).toBe(false);
  },
);

test("the advice fits the case", () => {
  const hints = (code: ErrorCode, facts: Record<string, string>): string =>
    failureOf(new HoldfastError(code, "It failed.", facts)).hints.join();
  expect(hints("STORE_FORBIDDEN", { errno: "EACCES" })).toMatch(/another user/);
  expect(hints("STORE_FORBIDDEN", { errno: "EROFS" })).toMatch(/still read.*holdfast copy/);
  expect(hints("STORE_FORBIDDEN", { errno: "EROFS" })).not.toMatch(/user|owner/);
  expect(hints("STORE_FULL", { errno: "ENOSPC" })).toMatch(/empties the trash/);
  // A limit on the size of one file: emptying the trash does not help.
  expect(hints("STORE_FULL", { errno: "EFBIG" })).toBe("");
  expect(hints("PATH_UNSAFE", { errno: "ENOTDIR", path: "/a/b.db" })).toMatch(/--store sqlite:\/a\/b\.db/);
  expect(hints("PATH_UNSAFE", { errno: "ENOTDIR", path: "/dev/null/x" })).toBe("");
  expect(hints("DIALECT_UNKNOWN", { dialect: "mine" })).toMatch(/Another program/);
  expect(hints("DIALECT_UNKNOWN", { dialect: "" })).toMatch(/damaged or missing.*holdfast verify/);
});

test("an error wraps between words; its code stays with it, and what it lists keeps its lines", () => {
  const error = new CommandError(
    3,
    "SESSION_AMBIGUOUS",
    '"0199" matches 2 sessions. Name one of them:\n  a1b2c3d4  one',
  );
  expect(failureLines(failureOf(error), 30)).toEqual([
    'holdfast: "0199" matches 2',
    "  sessions. Name one of them:",
    "  [SESSION_AMBIGUOUS]",
    "  a1b2c3d4  one",
  ]);
  expect(failureLines(failureOf(error), undefined)).toEqual([
    'holdfast: "0199" matches 2 sessions. Name one of them: [SESSION_AMBIGUOUS]',
    "  a1b2c3d4  one",
  ]);
});

test("C25: what an error quotes is harmless", () => {
  expect(failureOf(new CommandError(2, "USAGE", "no \x1b[2Jsuch")).message).toBe("no such");
});

test("a fault of our own says so; one of the system is said in its words", () => {
  expect(failureOf(new TypeError("x is not a function"))).toMatchObject({ exitCode: 1, code: "UNEXPECTED" });
  const system = Object.assign(new Error("ENOENT: no such file, open 'a'"), { code: "ENOENT", syscall: "open" });
  expect(failureOf(system)).toMatchObject({ exitCode: 1, code: "ENOENT" });
});
