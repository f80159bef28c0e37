import { EXPANDED } from "./shell-words.ts";

/**
 * Whether a command with these arguments is a leaf: it runs no other command and writes no file of the caller's choice.
 */
type Check = (args: readonly string[]) => boolean;

const anything: Check = () => true;

/**
 * Commands that run no other command in any common implementation (GNU, BSD, busybox, sh builtin). An allowlist,
 * because a list of dangerous commands is never complete. Commands that write a file of the caller's choice (`cp`,
 * `tee`, `ln`) are not in it: they could replace a program that is.
 */
const LEAVES: ReadonlyMap<string, Check> = new Map<string, Check>([
  ...forNames(
    anything,
    "ls pwd echo true false cat tac head tail wc nl cut paste tr comm join fold fmt expand unexpand rev seq basename dirname realpath readlink stat du df date cal uname id whoami groups nproc uptime free ps sleep expr md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum cmp od printenv which type jq mkdir rmdir touch rm cd",
  ),
  // In bash, a variable name may contain a command: test -v 'a[$(id)]'.
  ...forNames((args) => !args.some((word) => word.includes("[")), "test printf"),
  ...forNames(without("", ["filter", "pager", "view", "decompress", "search-zip"]), "grep egrep fgrep"),
  ["rg", without("z", ["pre", "hostname-bin", "search-zip"])],
  ["sort", without("o", ["output", "compress-program"])],
  ["diff", without("l", ["paginate"])],
  ["base64", without("o", ["output"])],
  ["tree", without("oR", ["output"])],
  // uniq writes to its second operand.
  ["uniq", (args) => args.filter((word) => !isOption(word)).length < 2 && !args.some(isExpanded)],
  ["find", (args) => !args.some((word) => isExpanded(word) || /^-(?:exec|ok|fprint|fls)/u.test(word))],
  // Only printing lines: other scripts may run commands (e) or write files (w).
  [
    "sed",
    (args) => args[0] === "-n" && /^(?:\d+|\$)(?:,(?:\d+|\$))?p$/u.test(args[1] ?? "") && operands(args.slice(2)),
  ],
  ["command", (args) => args[0] === "-v"],
  ["git", isGitLeaf],
]);

/** Git subcommands that only read. The others start hooks, editors, and transport or credential helpers. */
const GIT: ReadonlySet<string> = new Set(
  "status log show diff shortlog rev-parse rev-list ls-files ls-tree cat-file blame describe grep merge-base name-rev show-ref for-each-ref diff-tree count-objects version".split(
    " ",
  ),
);
const gitOptions = without("O", [
  "ext-diff",
  "textconv",
  "open-files-in-pager",
  "output",
  "filters",
  "paginate",
  "exec",
]);

/** The subcommand must come first: an option before it may define another one (`-c alias.x=!sh`). */
function isGitLeaf([command = "", ...args]: readonly string[]): boolean {
  return GIT.has(command) && gitOptions(args);
}

/** Only programs in these folders: `./ls` may be anything. */
const SYSTEM = /^(?:\/usr)?\/bin\//u;

/** Whether a command is known to run no other command. */
export function isLeaf([first = "", ...args]: readonly string[]): boolean {
  const name = first.replace(SYSTEM, "");
  return LEAVES.get(name)?.(args) ?? false;
}

function forNames(check: Check, names: string): [string, Check][] {
  return names.split(" ").map((name) => [name, check]);
}

/** None of these options, not even in a cluster (`-xo`), abbreviated (`--compress`), or from a shell wildcard. */
function without(letters: string, names: readonly string[]): Check {
  return (args) =>
    !args.some((word) => {
      if (isExpanded(word)) return true;
      if (/^-[^-]/u.test(word)) return [...letters].some((letter) => word.includes(letter));
      const [, long] = /^--([^=]+)/u.exec(word) ?? [];
      return long !== undefined && names.some((name) => name.startsWith(long) || long.startsWith(name));
    });
}

function operands(args: readonly string[]): boolean {
  return !args.some((word) => isOption(word) || isExpanded(word));
}

function isOption(word: string): boolean {
  return word.startsWith("-");
}

/** Whether a word may expand to an option: a file may be named like one. */
function isExpanded(word: string): boolean {
  return /^\0[*?[]/u.test(word) && word.startsWith(EXPANDED);
}
