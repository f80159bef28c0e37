import { posix } from "node:path";
import { isLeaf } from "./leaf-commands.ts";
import type { Places, Rule } from "./rules.ts";
import { EXPANDED, simpleCommands } from "./shell-words.ts";
import { isJoinedBy } from "./wildcard.ts";

/**
 * How shell rules match a simple command, given as its words.
 *
 * A rule that allows asks when in doubt. It matches word for word; `*` inside a word stays in its folder; a final `*`
 * matches more words. No `*` matches an option, or a word that the shell may expand to one: `-*` does, and a final `**`
 * matches anything.
 *
 * A rule that denies or asks matches when in doubt. It also matches longer commands, any path of the program, upper and
 * lower case, options and their values between its words, and its own options in any position. It looks into commands
 * that run others.
 */
type Words = readonly string[];

/** `maybe`: it cannot be determined. Then only a rule that gives the whole command allows it. */
export type Match = "yes" | "maybe" | "no";

const WILD = `${EXPANDED}*`;
const REST = WILD + WILD;

/** The words of a pattern's commands, with `EXPANDED*` as the wildcard. Empty if the pattern cannot be parsed. */
export function patternCommands(pattern: string, isLiteral: boolean): readonly Words[] {
  if (isLiteral) return simpleCommands(pattern.slice(1)) ?? [];
  // A lone wildcard also matches the program.
  return /^\s*\*{1,2}\s*$/u.test(pattern) ? [[WILD]] : (simpleCommands(pattern) ?? []);
}

/** Whether a rule matches all commands: `shell`, `shell(*)`, `*`. */
export function namesEveryCommand({ tool, pattern, commands }: Rule): boolean {
  if (tool !== "shell" && tool !== "*") return false;
  return pattern === null || commands[0]?.[0] === WILD;
}

/** Judges one simple command. The caller checks that every command of a line is allowed. */
export function allowsCommand(rule: Rule, words: Words): boolean {
  const [pattern, ...more] = rule.commands;
  if (pattern === undefined || more.length > 0) return false;
  if (rule.isExact) return pattern.length === words.length && pattern.every((word, at) => word === words[at]);
  const last = pattern.at(-1);
  const isOpen = last === WILD || last === REST;
  const fixed = isOpen ? pattern.slice(0, -1) : pattern;
  if (isOpen ? words.length < fixed.length : words.length !== fixed.length) return false;
  if (!fixed.every((wanted, at) => allowsWord(wanted, words[at]!))) return false;
  return last !== WILD || !words.slice(fixed.length).some(mayBeOption);
}

/** Whether a word contains `..`, or something the shell may expand to it (`.?`, `.*`). */
function leadsUp(word: string): boolean {
  if (/(?:^|[/=:])\.\.(?:\/|$)/u.test(word)) return true;
  return word.split("/").some((name) => {
    const dot = /(?:^|[=:])\./u.exec(name);
    return dot !== null && name.lastIndexOf(EXPANDED) > dot.index;
  });
}

/** A wildcard inside a word stays inside its folder: `rm build/*` does not match `rm build/../src`. */
function allowsWord(wanted: string, word: string): boolean {
  if (wanted.startsWith(WILD) && mayBeOption(word)) return false;
  if (wanted === word || wanted === WILD) return true;
  const pieces = wanted.split(WILD);
  if (pieces.length === 1 || !isJoinedBy(pieces, word)) return false;
  const slashes = (text: string): number => text.split("/").length;
  return slashes(wanted) === slashes(word) && !leadsUp(word) && !word.includes(`${EXPANDED}~`);
}

/** Includes `+` (`vim +!sh`, `less +!sh`) and shell wildcards, which may match a file named like an option. */
function mayBeOption(word: string): boolean {
  return /^(?:[-+]|\0[*?[])/u.test(word);
}

/** Commands that change what later commands mean: the folder, the variables, the names. */
const CHANGES_SHELL: ReadonlySet<string> = new Set(
  "cd chdir pushd popd export readonly unset alias unalias set shopt enable hash declare typeset local read getopts trap eval . source exec".split(
    " ",
  ),
);

/** Whether a command changes what later ones in the line mean: `rm build/*` does not cover `cd / && rm build/x`. */
export function changesMeaning(commands: readonly Words[], { cwd }: Pick<Places, "cwd">): boolean {
  return commands.slice(0, -1).some((words) => {
    const at = words.findIndex((word) => word !== "command" && word !== "builtin");
    const [name = "", ...args] = words.slice(Math.max(at, 0));
    if (!CHANGES_SHELL.has(name)) return false;
    // Models often cd to the folder they are in.
    return !(name === "cd" && args.length === 1 && (args[0] === "." || args[0] === cwd));
  });
}

/** Commands that run other commands, given as words or as text. */
const RUNNERS: ReadonlySet<string> = new Set(
  "env command builtin exec eval nohup nice ionice chrt taskset time timeout setsid stdbuf unbuffer sudo doas su runuser xargs parallel watch entr sh bash dash zsh ksh fish busybox toybox trap chroot unshare nsenter ssh script flock strace ltrace gdb find npx bunx".split(
    " ",
  ),
);

/** Longer commands are not searched: it would take too long. */
const WORDS_MAX = 1000;
const WORD_CHARS_MAX = 4096;
const DEPTH_MAX = 4;

/**
 * Whether each command of a rule that denies or asks matches some command of this line. `commands` is null if the line
 * cannot be parsed: then only its text is compared.
 */
export function forbidsLine(rule: Rule, line: string, commands: readonly Words[] | null, places: Places): boolean {
  if (namesEveryCommand(rule) || line.trim() === rule.pattern!.trim()) return true;
  if (commands === null || rule.commands.length === 0) return false;
  return rule.commands.every((one) =>
    commands.some((words) => forbids({ ...rule, words: one }, words, places) === "yes"),
  );
}

/** Whether a rule that denies or asks matches this command, or one that it runs. */
export function forbidsCommand(rule: Rule, words: Words, places: Places): Match {
  if (namesEveryCommand(rule)) return "yes";
  const found = rule.commands.map((one) => forbids({ ...rule, words: one }, words, places));
  return found.find((match) => match === "yes") ?? found.find((match) => match === "maybe") ?? "no";
}

/** One command of a rule. */
interface Forbidden {
  readonly words: Words;
  readonly isLiteral?: true;
}

function forbids(rule: Forbidden, words: Words, places: Places, depth = 0): Match {
  const pattern = rule.words;
  if (rule.isLiteral) {
    if (pattern.length === words.length && pattern.every((word, at) => word === words[at])) return "yes";
  } else {
    const match = matches(pattern, words, places);
    if (match !== "no") return match;
  }
  if (isLeaf(words)) return "no";
  if (words.length > WORDS_MAX || depth >= DEPTH_MAX) return "maybe";
  if (!runs(rule, words, places, depth)) return "no";
  return RUNNERS.has(programOf(words[0]!)) ? "yes" : "maybe";
}

/**
 * Whether the words of a command, or text in them, are a command that the rule matches: `env git push`, `sh -c 'git
 * push'`.
 */
function runs(rule: Forbidden, words: Words, places: Places, depth: number): boolean {
  return words.slice(1).some((word, at) => {
    const isStart = fits(rule.words[0]!, word, places, true);
    if (isStart && matches(rule.words, words, places, at + 1) !== "no") return true;
    if (!/[\s;&|]/u.test(word) || word.length > WORD_CHARS_MAX) return false;
    const inside = simpleCommands(word.replaceAll(EXPANDED, ""));
    return inside?.some((one) => forbids(rule, one, places, depth + 1) !== "no") ?? false;
  });
}

/**
 * Matches the pattern's words in order, with options and their values between them, and its options anywhere. `from` is
 * where the command starts in `words`.
 */
function matches(pattern: Words, words: Words, places: Places, from = 0): Match {
  if (!fits(pattern[0]!, words[from] ?? "", places, true)) return "no";
  if (words.length > WORDS_MAX) return "maybe";
  const order = pattern.slice(1).filter((word) => !word.startsWith("-"));
  const options = pattern.slice(1).filter((word) => word.startsWith("-") && word !== "--");
  const place = inOrder(order, words, places, from + 1);
  if (place === "no") return "no";
  const rest = words.slice(from + 1);
  if (options.every((option) => hasOption(option, rest, places))) return place;
  // `-f` and `--force` may mean the same.
  const has = (form: RegExp, all: Words): boolean => all.some((word) => form.test(word));
  const isOtherForm =
    (has(SHORT, options) && has(LONG, rest)) || (has(LONG, options) && has(SHORT, rest)) || rest.some(isWild);
  return isOtherForm ? "maybe" : "no";
}

const SHORT = /^-[^-]/u;
const LONG = /^--./u;

function inOrder(wanted: Words, words: Words, places: Places, from: number): Match {
  // Leading options may define what the next word means: git -c alias.p=push p.
  const isRenamed = wanted.length > 0 && wanted[0] !== WILD && words[from]?.startsWith("-");
  let strict = passWild(wanted, new Set([0]));
  let loose = strict;
  let isBehindOption = false;
  let hadOption = false;
  for (let at = from; at < words.length; at++) {
    const word = words[at]!;
    const isOption = word.startsWith("-");
    hadOption ||= isOption;
    strict = step(wanted, strict, word, isOption || isBehindOption, places);
    loose = step(wanted, loose, word, hadOption, places);
    isBehindOption = isOption;
    // No reading is left: `loose` contains everything in `strict`.
    if (loose.size === 0) break;
  }
  if (strict.has(wanted.length)) return "yes";
  return loose.has(wanted.length) || isRenamed ? "maybe" : "no";
}

/** How many of the wanted words have been found, for every possible reading. */
function step(wanted: Words, before: Set<number>, word: string, mayPass: boolean, places: Places): Set<number> {
  const after = new Set<number>();
  for (const found of before) {
    // A rule also matches longer commands.
    if (found === wanted.length) after.add(found);
    if (mayPass || isWildcard(wanted[found])) after.add(found);
    // A shell wildcard may expand to several words.
    for (let at = found; at < wanted.length && fits(wanted[at]!, word, places, false); at++) {
      after.add(at + 1);
      if (!isWild(word)) break;
    }
  }
  return passWild(wanted, after);
}

function passWild(wanted: Words, found: Set<number>): Set<number> {
  for (const at of found) if (isWildcard(wanted[at])) found.add(at + 1);
  return found;
}

function isWildcard(word: string | undefined): boolean {
  return word === WILD || word === REST;
}

/** Whether the shell will expand this word of a command. */
function isWild(word: string): boolean {
  return /\0[*?[]/u.test(word);
}

/** `-rf` also matches `-fr`, `-r -f` and `-vrf`; `--force` also matches `--forc` and `--force=x`. */
function hasOption(option: string, words: Words, places: Places): boolean {
  if (words.some((word) => fits(option, word, places, false))) return true;
  if (LONG.test(option)) {
    const name = nameOf(option);
    return words.some((word) => LONG.test(word) && (nameOf(word).startsWith(name) || name.startsWith(nameOf(word))));
  }
  const letters = [...option.slice(1)];
  // A longer one is a name: `find -delete`.
  if (letters.length > 3 || option.includes(EXPANDED)) return false;
  const given = new Set(words.filter((word) => SHORT.test(word)).flatMap((word) => [...word.slice(1)]));
  return letters.every((letter) => given.has(letter));
}

function nameOf(option: string): string {
  return option.split("=", 1)[0]!.split(EXPANDED, 1)[0]!;
}

function programOf(word: string): string {
  return word.slice(word.lastIndexOf("/") + 1);
}

/** Whether a word may be what a denying rule wants, in any spelling of the same path. */
function fits(wanted: string, word: string, places: Places, isProgram: boolean): boolean {
  if (isWildcard(wanted)) return true;
  if (word.length > WORD_CHARS_MAX) return word.slice(0, 1) === wanted.slice(0, 1) || wanted.startsWith(WILD);
  const forms = formsOf(word, places);
  if (isProgram) forms.push(programOf(word));
  return formsOf(wanted, places).some((one) => forms.some((form) => canBeSame(fold(one), fold(form))));
}

function fold(word: string): string {
  return word.normalize("NFC").toLowerCase();
}

function formsOf(word: string, { cwd, home }: Places): string[] {
  if (!word.includes("/") && !word.includes(`${EXPANDED}~`)) return [word];
  const whole = word.replace(/^\0~(?=\/|$)/u, home);
  const normal = posix.normalize(whole).replace(/(?<=.)\/$/u, "");
  const inside = normal.startsWith(`${cwd}/`) ? [normal.slice(cwd.length + 1)] : [];
  return [word, normal, ...inside];
}

/** Whether some text matches both wildcard patterns. */
function canBeSame(wanted: string, word: string): boolean {
  if (!isWild(word) && !/\0[?[]/u.test(wanted)) return isJoinedBy(wanted.split(WILD), word);
  const one = tokens(wanted);
  const other = tokens(word);
  // open[at]: the part of the second before `at` matches what has been read of the first.
  let open = close(other, [true]);
  for (const token of one) {
    const next: boolean[] = [];
    for (let at = 0; at <= other.length; at++) {
      if (token === null) next[at] = open[at] === true || next[at - 1] === true;
      else if (other[at] === null) next[at] = next[at] === true || open[at] === true;
      else if (open[at] && other[at] === token) next[at + 1] = true;
    }
    open = close(other, next);
  }
  return open[other.length] === true;
}

/** A wildcard may match nothing. */
function close(tokens: readonly (string | null)[], open: boolean[]): boolean[] {
  for (const [at, token] of tokens.entries()) if (open[at] && token === null) open[at + 1] = true;
  return open;
}

/** Characters, and null for any number of them. A class (`[a-z]`) and everything after it count as one null. */
function tokens(word: string): (string | null)[] {
  const all: (string | null)[] = [];
  for (let at = 0; at < word.length; at++) {
    if (word[at] !== EXPANDED) {
      all.push(word[at]!);
      continue;
    }
    at += 1;
    if (word[at] === "~") all.push("~");
    else all.push(null);
    if (word[at] === "[") break;
  }
  return all;
}
