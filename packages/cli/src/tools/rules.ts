import { sep } from "node:path";
import { EXPANDED, simpleCommands } from "./shell-words.ts";
import { isJoinedBy } from "./wildcard.ts";

/**
 * A rule of permission. `*`: everything. `read`: every call of that tool; as a permission, only inside of the working folder. `write(src/**)`: on these paths. `shell(npm *)`: these commands. `read(=a*b)`, `shell(=…)`: exactly
 * this path, exactly this command line, without wildcards.
 */
export interface Rule {
  readonly text: string;
  /** `*` for every tool. */
  readonly tool: string;
  readonly pattern: string | null;
  readonly isExact: boolean;
  /** By its `=`: not one character more or less. */
  readonly isLiteral?: true;
}

/** Null if it is none. */
export function parseRule(text: string): Rule | null {
  const [, tool, , pattern] = /^([A-Za-z_][\w.:/-]*|\*)\s*(\(([\s\S]*)\))?$/u.exec(text.trim()) ?? [];
  if (tool === undefined) return null;
  if (pattern === undefined) return { text, tool, pattern: null, isExact: false };
  if (tool === "*" || pattern.trim() === "") return null;
  if (pattern.startsWith("=")) return { text, tool, pattern: pattern.slice(1), isExact: true, isLiteral: true };
  if (tool === "shell" && pattern.includes("*") && shellPattern(pattern) === null) return null;
  if (PATH_TOOLS.has(tool) && pathPattern(pattern, "/", "/") === null) return null;
  return { text, tool, pattern: pattern.trim(), isExact: !pattern.includes("*") };
}

export const PATH_TOOLS: ReadonlySet<string> = new Set(["read", "write", "edit", "list", "search"]);
const TOOLS: ReadonlySet<string> = new Set(["*", ...PATH_TOOLS, "shell", "task"]);
/** These touch what is in a folder, too. */
const TREE_TOOLS: ReadonlySet<string> = new Set(["list", "search"]);

/** What is wrong with a rule, in words; null if nothing is. */
export function checkRule(text: string): string | null {
  const rule = parseRule(text);
  // A slip in the name of a tool would leave a rule that forbids without effect, and nobody would know.
  if (rule && !TOOLS.has(rule.tool))
    return `The rule ${JSON.stringify(text)} names no tool of the agent. Its tools are ${[...TOOLS].slice(1).join(", ")}; * is all of them.`;
  if (rule) return null;
  return `${JSON.stringify(text)} is not a rule of permission. A rule is a tool (read), a tool with paths (write(src/**)), the shell with one simple command (shell(npm *)), or * for everything.`;
}

export interface Places {
  readonly cwd: string;
  readonly home: string;
}

/** Whether a rule names this path, and nothing less than all that the tool would touch there. `isBroad`: for rules that forbid, in doubt yes. */
export function namesPath(rule: Rule, tool: string, path: string, { cwd, home }: Places, isBroad: boolean): boolean {
  const given = rule.isExact ? literal(rule.pattern!, cwd, home) : pathPattern(rule.pattern!, cwd, home);
  if (given === null) return false;
  const fold = (text: string): string => (isBroad ? text.normalize("NFC").toLowerCase() : text);
  const pattern = given.map((segment) => (segment === DEEP ? DEEP : segment.map(fold)));
  const names = segments(path).map(fold);
  const isTree = !isBroad && TREE_TOOLS.has(tool);
  if (isTree && !rule.isExact && pattern.at(-1) !== DEEP) return false;
  return matches(pattern, names);
}

const DEEP = "**";
/** Of a name: the texts between its wildcards. */
type Segment = readonly string[] | typeof DEEP;

function segments(path: string): string[] {
  return path.split(sep).filter((name) => name !== "");
}

function based(pattern: string, cwd: string, home: string): { base: string[]; names: string[] } {
  const names = pattern.split(sep === "/" ? "/" : /[/\\]/u);
  if (names[0] === "~") return { base: segments(home), names: names.slice(1) };
  if (names[0] === "") return { base: [], names };
  return /^[A-Za-z]:$/u.test(names[0]!) && sep === "\\" ? { base: [], names } : { base: segments(cwd), names };
}

function literal(pattern: string, cwd: string, home: string): Segment[] {
  const { base, names } = based(pattern, cwd, home);
  return normal([...base, ...names].map((name) => [name]));
}

/** Null: `..` behind a wildcard leads nobody knows where. */
function pathPattern(pattern: string, cwd: string, home: string): Segment[] | null {
  const { base, names } = based(pattern.trim(), cwd, home);
  const firstWild = names.findIndex((name) => name.includes("*"));
  if (firstWild >= 0 && names.slice(firstWild).includes("..")) return null;
  const parsed = names.map((name): Segment => (name === DEEP ? DEEP : name.split("*")));
  return normal([...base.map((name) => [name]), ...parsed]);
}

function normal(given: readonly Segment[]): Segment[] {
  const all: Segment[] = [];
  for (const segment of given) {
    if (segment !== DEEP && segment.length === 1 && (segment[0] === "" || segment[0] === ".")) continue;
    if (segment !== DEEP && segment.length === 1 && segment[0] === "..") all.pop();
    else all.push(segment);
  }
  return all;
}

/** `open[i]`: the pattern from its start up to the i-th segment fits the names so far. */
function matches(pattern: readonly Segment[], names: readonly string[]): boolean {
  const passDeep = (open: boolean[]): boolean[] => {
    for (const [at, segment] of pattern.entries()) if (open[at] && segment === DEEP) open[at + 1] = true;
    return open;
  };
  let open = passDeep([true]);
  for (const name of names) {
    const next: boolean[] = [];
    for (const [at, segment] of pattern.entries()) {
      if (!open[at]) continue;
      if (segment === DEEP) next[at] = true;
      else if (isJoinedBy(segment, name)) next[at + 1] = true;
    }
    open = passDeep(next);
  }
  return open[pattern.length] === true;
}

/** The words of a pattern for one simple command; `EXPANDED*` in them is a wildcard. */
function shellPattern(pattern: string): string[] | null {
  // A lone wildcard may stand for the command, too.
  const isAny = pattern.trim() === "*";
  const commands = isAny ? [[`${EXPANDED}*`]] : simpleCommands(pattern);
  return commands?.length === 1 ? commands[0]! : null;
}

const WILD = `${EXPANDED}*`;

/** One simple command, by its words. Whether all commands of a line are allowed is for the caller to ask. */
export function allowsCommand(rule: Rule, words: readonly string[]): boolean {
  return namesCommand(rule, words, false);
}

/** For rules that forbid: in doubt yes, and by whatever path the command is called. */
export function forbidsCommand(rule: Rule, [first = "", ...rest]: readonly string[]): boolean {
  const name = first.slice(first.lastIndexOf("/") + 1);
  return namesCommand(rule, [first, ...rest], true) || namesCommand(rule, [name, ...rest], true);
}

function namesCommand(rule: Rule, words: readonly string[], isBroad: boolean): boolean {
  if (rule.pattern === null) return false;
  if (!rule.isExact) return fits(shellPattern(rule.pattern) ?? [], words, isBroad);
  const commands = simpleCommands(rule.pattern);
  const exact = commands?.length === 1 ? commands[0]! : null;
  if (exact === null || !exact.every((word, at) => word === words[at])) return false;
  // Who forbids `git push` means `git push --force` too.
  return exact.length === words.length || (isBroad && !rule.isLiteral);
}

/** Commands that run others, which they are given as words or as a text. */
const RUNNERS: ReadonlySet<string> = new Set(
  "env command builtin exec eval nohup nice ionice time timeout setsid stdbuf sudo doas su xargs parallel watch entr sh bash dash zsh ksh fish busybox . source trap alias chroot unshare nsenter ssh script".split(
    " ",
  ),
);

/** Whether a command may be one that these rules forbid, without its words showing it: it runs another, or its options stand before the word that they name (`git -C . push`). */
export function hidesCommand([first = "", ...rest]: readonly string[], rules: readonly Rule[]): boolean {
  const name = first.slice(first.lastIndexOf("/") + 1);
  if (RUNNERS.has(name) || (name === "find" && rest.some((word) => /^-(?:exec|ok)/u.test(word)))) return true;
  return hidesWord([first, ...rest], rules);
}

/** Whether a rule that allows all of a command would allow one that these forbid. Who allows a command that runs others means it. */
export function allowsHidden(rule: Rule, commands: readonly (readonly string[])[], rules: readonly Rule[]): boolean {
  const isOpen = !rule.isExact && shellPattern(rule.pattern ?? "")?.[1] === WILD;
  return isOpen && commands.some((words) => allowsCommand(rule, words) && hidesWord(words, rules));
}

function hidesWord([first = "", ...rest]: readonly string[], rules: readonly Rule[]): boolean {
  const name = first.slice(first.lastIndexOf("/") + 1);
  if (!rest[0]?.startsWith("-")) return false;
  return rules.some(({ pattern }) => {
    const [wanted, next] = shellPattern(pattern ?? "") ?? [];
    return wanted === name && next !== undefined && next !== WILD && !next.startsWith("-");
  });
}

function fits(pattern: readonly string[], words: readonly string[], isBroad: boolean): boolean {
  const isOpen = pattern.at(-1) === WILD;
  const fixed = isOpen ? pattern.slice(0, -1) : pattern;
  if (isOpen ? words.length < fixed.length : words.length !== fixed.length) return false;
  return fixed.every((wanted, at) => fitsWord(wanted, words[at]!, isBroad));
}

/** `..`, also as what the shell finds for `.?` or `.*`. */
function leadsUp(word: string): boolean {
  if (/(?:^|[/=:])\.\.(?:\/|$)/u.test(word)) return true;
  return word.split("/").some((name) => {
    const dot = /(?:^|[=:])\./u.exec(name);
    return dot !== null && name.lastIndexOf(EXPANDED) > dot.index;
  });
}

/** Within a word a wildcard stays inside of a folder: `rm build/*` is not `rm build/../src`. */
function fitsWord(wanted: string, word: string, isBroad: boolean): boolean {
  if (wanted === word || wanted === WILD) return true;
  const pieces = wanted.split(WILD);
  if (pieces.length === 1 || !isJoinedBy(pieces, word)) return false;
  if (isBroad) return true;
  const slashes = (text: string): number => text.split("/").length;
  return slashes(wanted) === slashes(word) && !leadsUp(word) && !word.includes(`${EXPANDED}~`);
}
