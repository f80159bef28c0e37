import { EXPANDED } from "./shell-words.ts";

/**
 * Whether these arguments leave a command a leaf: it runs no other command, and writes no file of its caller's choice.
 */
type Check = (args: readonly string[]) => boolean;

const anything: Check = () => true;

/**
 * Commands that run no other command, whatever program stands behind the usual name (GNU, BSD, busybox, a builtin of
 * sh). A list of what is known to be harmless, and not of what is dangerous: the second one is never complete.
 * Commands that write to a file of the caller's choice (`cp`, `tee`, `ln`) are not in it: what they write may be run
 * under the name of one that is.
 */
const LEAVES: ReadonlyMap<string, Check> = new Map<string, Check>([
  ...forNames(
    anything,
    "ls pwd echo true false cat tac head tail wc nl cut paste tr comm join fold fmt expand unexpand rev seq basename dirname realpath readlink stat du df date cal uname id whoami groups nproc uptime free ps sleep expr md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum cmp od printenv which type jq mkdir rmdir touch rm cd",
  ),
  // In bash, the name of a variable may hold a command: test -v 'a[$(id)]'.
  ...forNames((args) => !args.some((word) => word.includes("[")), "test printf"),
  ...forNames(without("", ["filter", "pager", "view", "decompress", "search-zip"]), "grep egrep fgrep"),
  ["rg", without("z", ["pre", "hostname-bin", "search-zip"])],
  ["sort", without("o", ["output", "compress-program"])],
  ["diff", without("l", ["paginate"])],
  ["base64", without("o", ["output"])],
  ["tree", without("oR", ["output"])],
  // A second file is written to.
  ["uniq", (args) => args.filter((word) => !isOption(word)).length < 2 && !args.some(isExpanded)],
  ["find", (args) => !args.some((word) => isExpanded(word) || /^-(?:exec|ok|fprint|fls)/u.test(word))],
  // Only the printing of lines: a script may run commands (e) and write files (w).
  [
    "sed",
    (args) => args[0] === "-n" && /^(?:\d+|\$)(?:,(?:\d+|\$))?p$/u.test(args[1] ?? "") && operands(args.slice(2)),
  ],
  ["command", (args) => args[0] === "-v"],
  ["git", isGitLeaf],
]);

/** Of `git`: those that only look. Hooks, editors, helpers for transport and credentials are started by the others. */
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

/** The subcommand comes first: an option before it may define another one (`-c alias.x=!sh`). */
function isGitLeaf([command = "", ...args]: readonly string[]): boolean {
  return GIT.has(command) && gitOptions(args);
}

/** The programs of these folders only: `./ls` may be anything. */
const SYSTEM = /^(?:\/usr)?\/bin\//u;

/** Whether a command is known to run no other command. */
export function isLeaf([first = "", ...args]: readonly string[]): boolean {
  const name = first.replace(SYSTEM, "");
  return LEAVES.get(name)?.(args) ?? false;
}

function forNames(check: Check, names: string): [string, Check][] {
  return names.split(" ").map((name) => [name, check]);
}

/**
 * None of these options, also in a cluster (`-xo`), shortened (`--compress`), or as what the shell finds for a
 * wildcard.
 */
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

/** It may become an option: there may be a file of that name. */
function isExpanded(word: string): boolean {
  return /^\0[*?[]/u.test(word) && word.startsWith(EXPANDED);
}
