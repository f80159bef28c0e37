import { expect, test } from "vitest";
import { expandShorthand, similarTo } from "../../../src/commands/shorthand.ts";
import { makeProgram } from "../../../src/main.ts";

const COMMANDS = [...makeProgram().commands.map((one) => one.name()), "help"];
const expand = (args: readonly string[], hasInput = false): string[] => expandShorthand(args, COMMANDS, hasInput);

test.each([
  [[], []],
  [["ls"], ["ls"]],
  [
    ["ls", "-x"],
    ["ls", "-x"],
  ],
  [
    ["--store", "x", "ls"],
    ["ls", "--store", "x"],
  ],
  [
    ["--store=x", "ls"],
    ["ls", "--store=x"],
  ],
  [
    ["--store", "ls"],
    ["--store", "ls"],
  ],
  [["--help"], ["--help"]],
  [
    ["-h", "run"],
    ["-h", "run"],
  ],
  [["-v"], ["-v"]],
  [["-V"], ["--version"]],
  [["fix the test"], ["chat", "fix the test"]],
  [["修复测试"], ["chat", "修复测试"]],
  [
    ["-m", "offline", "fix the test"],
    ["chat", "-m", "offline", "fix the test"],
  ],
  [
    ["fix the test", "-m", "offline"],
    ["chat", "fix the test", "-m", "offline"],
  ],
  [
    ["--model=offline", "chat"],
    ["chat", "--model=offline"],
  ],
  [
    ["-m", "offline"],
    ["chat", "-m", "offline"],
  ],
  [["-c"], ["chat", "-c"]],
  [
    ["-c", "yes"],
    ["chat", "-c", "yes"],
  ],
  [
    ["-r", "5f2a91c0", "go on"],
    ["chat", "-r", "5f2a91c0", "go on"],
  ],
  [["-r"], ["chat", "-r"]],
  [
    ["-r", "-m", "x"],
    ["chat", "-r", "-m", "x"],
  ],
  [
    ["-p", "hello"],
    ["run", "hello"],
  ],
  [
    ["-p", "ls"],
    ["run", "ls"],
  ],
  [["-p"], ["run"]],
  [
    ["--print", "-c", "hello", "--json"],
    ["run", "-c", "hello", "--json"],
  ],
  [
    ["-cp", "hello"],
    ["run", "-c", "hello"],
  ],
  [
    ["-p", "--", "-x is what?"],
    ["run", "--", "-x is what?"],
  ],
  [
    ["-m", "-p", "two words"],
    ["chat", "-m", "-p", "two words"],
  ],
  [
    ["--", "ls"],
    ["chat", "ls"],
  ],
  [
    ["--", "--help me"],
    ["chat", "--", "--help me"],
  ],
  [
    ["--allow", "shell(ls)", "-p", "list src"],
    ["run", "--allow", "shell(ls)", "list src"],
  ],
])("%j is %j", (args, wanted) => {
  expect(expand(args)).toEqual(wanted);
});

test("what is piped in belongs to the prompt of -p, and only there", () => {
  expect(expand(["-p", "explain this"], true)).toEqual(["run", "--stdin", "explain this"]);
  expect(expand(["-p"], true)).toEqual(["run"]);
  expect(expand(["run", "explain this"], true)).toEqual(["run", "explain this"]);
});

test.each([
  [["lss"], 'Did you mean "holdfast ls"', 'holdfast chat "lss"'],
  [["sohw", "5f2a91c0"], 'Did you mean "holdfast show"', 'holdfast "sohw 5f2a91c0"'],
  [["verfiy"], 'Did you mean "holdfast verify"', 'holdfast chat "verfiy"'],
  [["delete", "latest"], 'Did you mean "holdfast rm"', 'holdfast "delete latest"'],
  [["LS"], 'Did you mean "holdfast ls"', 'holdfast chat "LS"'],
  [["hello"], '"holdfast --help" lists the commands', 'holdfast chat "hello"'],
  [["explain", "this", "code"], '"holdfast --help" lists the commands', 'holdfast "explain this code"'],
  [["-m", "anthropic/claude-sonnet-4-5", "lss"], 'Did you mean "holdfast ls"', 'holdfast chat "lss"'],
  [[""], '"holdfast --help" lists', 'holdfast chat ""'],
])("%j is not sent to a model", (args, meant, how) => {
  const refused = expect.objectContaining({ exitCode: 2, code: "USAGE", message: expect.stringContaining(meant) });
  expect(() => expand(args)).toThrow(refused);
  expect(() => expand(args)).toThrow(how);
  expect(() => expand(args)).toThrow("Nothing was sent");
});

test("a long or hostile word is refused in a few words", () => {
  const word = `${"x".repeat(100_000)}`;
  expect(() => expand([word])).toThrow(expect.objectContaining({ message: expect.stringMatching(/^.{1,400}$/s) }));
  expect(() => expand(["\x1b[2J"])).not.toThrow();
});

test("every command is its own nearest, and none is near to nonsense", () => {
  for (const name of COMMANDS.filter((one) => !one.includes("-"))) expect(similarTo(name, COMMANDS)).toBe(name);
  for (const word of ["", "x", "qqqqqq", "supercalifragilistic"]) expect(similarTo(word, COMMANDS)).toBeNull();
});
