import { posix } from "node:path";
import { foldText } from "../paths/file-names.ts";
import { isLeaf } from "./leaf-commands.ts";
import type { OperandPaths } from "./operand-paths.ts";
import {
  addsOperands,
  canonical,
  isHiddenOption,
  isRunner,
  isSubcommand,
  mayBeRef,
  mayChangeFolder,
  readsCommand,
  splitName,
  takesOperands,
} from "./program-words.ts";
import type { Match, Places, Rule } from "./rule.ts";
import { EXPANDED, simpleCommands } from "./shell-words.ts";
import { canBeSame, isJoinedBy, isWild, WILD } from "./wildcard.ts";

/**
 * How shell rules match a simple command, given as its words.
 *
 * A rule that allows asks when in doubt. It matches word for word; `*` inside a word stays in its folder; a final `*`
 * matches more words. No `*` matches an option, or a word that the shell may expand to one: `-*` does, and a final `**`
 * matches anything.
 *
 * A rule that denies or asks matches when in doubt. It also matches longer commands, any path of the program, upper and
 * lower case, options and their values between its words, its own options in any position, and its paths in any
 * position and any spelling. It looks into commands that run others.
 */
type Words = readonly string[];

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
  const isOption = (word: string, at: number): boolean =>
    mayBeOption(word) || isHiddenOption(programOf(words[at - 1] ?? ""), programOf(words[0]!), word);
  const isFixed = fixed.every(
    (wanted, at) => allowsWord(wanted, words[at]!) && !(wanted.startsWith(WILD) && isOption(words[at]!, at)),
  );
  return isFixed && (last !== WILD || !words.some((word, at) => at >= fixed.length && isOption(word, at)));
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

/**
 * Commands that change what later commands mean: the folder, the variables, the names. Those of every `sh`: of bash,
 * dash, busybox, ksh and zsh.
 */
const CHANGES_SHELL: ReadonlySet<string> = new Set(
  `cd chdir pushd popd dirs export readonly unset alias unalias set shopt enable hash rehash declare typeset local read
  mapfile readarray getopts let wait trap eval . source exec bind complete integer float compound nameref enum autoload
  functions emulate setopt unsetopt zmodload zparseopts zstyle zle vared print sysread disable unhash unfunction compdef
  sched zformat zregexparse strftime zstat redirect noglob nocorrect repeat`.split(/\s+/u),
);

/** Whether a command changes what later ones in the line mean: `rm build/*` does not cover `cd / && rm build/x`. */
export function changesMeaning(commands: readonly Words[], { cwd }: Pick<Places, "cwd">): boolean {
  return commands.slice(0, -1).some((words) => {
    const [first] = words;
    if (first === "command" && (words[1] === "-v" || words[1] === "-V")) return false;
    const at = words.findIndex((word) => word !== "command" && word !== "builtin" && !word.startsWith("-"));
    const [name = "", ...args] = words.slice(Math.max(at, 0));
    if (name === "printf") return assigns(args);
    if (!CHANGES_SHELL.has(name)) return false;
    // Models often cd to the folder they are in.
    return !(first === "cd" && args.length === 1 && (args[0] === "." || args[0] === cwd));
  });
}

/** In bash, ksh and zsh, printf assigns to a variable: `-v PATH`, and `%n`. */
function assigns([format = ""]: readonly string[]): boolean {
  return /^(?:-|\0[*?[])/u.test(format) || /%[^%A-Za-z]*n/u.test(format.replaceAll("%%", ""));
}

/** Longer commands are not searched: it would take too long. */
const WORDS_MAX = 1000;
const WORD_CHARS_MAX = 4096;
const DEPTH_MAX = 4;
/** Words of a command that may each be the start of another. */
const STARTS_MAX = 32;

/**
 * Whether each command of a rule that denies or asks matches some command of this line. `commands` is null if the line
 * cannot be parsed: then only its text is compared.
 */
export function forbidsLine(rule: Rule, line: string, commands: readonly Words[] | null, paths: OperandPaths): boolean {
  if (namesEveryCommand(rule) || line.trim() === rule.pattern!.trim()) return true;
  if (commands === null || rule.commands.length === 0) return false;
  return rule.commands.every((one) =>
    commands.some((words) => forbids({ ...rule, words: one }, words, paths) === "yes"),
  );
}

/** Whether a rule that denies or asks matches this command, or one that it runs. */
export function forbidsCommand(rule: Rule, words: Words, paths: OperandPaths): Match {
  if (namesEveryCommand(rule)) return "yes";
  return surest(rule.commands.map((one) => forbids({ ...rule, words: one }, words, paths)));
}

function surest(found: readonly Match[]): Match {
  return found.find((match) => match === "yes") ?? found.find((match) => match === "maybe") ?? "no";
}

/** One command of a rule. */
interface Forbidden {
  readonly words: Words;
  readonly isLiteral?: true;
}

function forbids(rule: Forbidden, given: Words, paths: OperandPaths, depth = 0): Match {
  const pattern = rule.words;
  const words = given.flatMap(splitName);
  if (rule.isLiteral) {
    if (pattern.length === given.length && pattern.every((word, at) => word === given[at])) return "yes";
  } else if (isProgram(pattern[0]!, words[0]!, paths)) {
    const match = matches(pattern, words, paths, 1);
    if (match !== "no") return match;
  }
  if (isLeaf(words)) return "no";
  if (words.length > WORDS_MAX || depth >= DEPTH_MAX) return "maybe";
  return runs(rule, words, paths, depth);
}

/**
 * Whether the words of a command, or text in them, are a command that the rule matches: `env git push`, `sh -c 'git
 * push'`. Other programs may mean something else by the same words: `maybe`.
 */
function runs(rule: Forbidden, words: Words, paths: OperandPaths, depth: number): Match {
  const program = programOf(words[0]!);
  const isSure = isRunner(program);
  const hasPath = rule.words.slice(1).some((word) => isPlaced({ program: programOf(rule.words[0]!) }, word));
  let best: Match = readsCommand(program, words.slice(1)) ? "maybe" : "no";
  let starts = 0;
  for (const [at, word] of words.entries()) {
    if (at === 0) continue;
    if (starts > STARTS_MAX) return "maybe";
    const isMoved = hasPath && mayChangeFolder(program, words.slice(1, at));
    // The value of an option too: env -Sgit push.
    const [, value] = /^(?:--[\w-]+=|-[A-Za-z])(.+)$/su.exec(word) ?? [];
    for (const text of value === undefined ? [word] : [word, value]) {
      const isStart = isProgram(rule.words[0]!, text.replace(/(?<=.)@.*$/su, ""), paths);
      if (isStart) starts += 1;
      const found = [
        isStart && (isMoved || addsOperands(program)) ? "maybe" : "no",
        isStart ? matches(rule.words, words, paths, at + 1, !isSure) : "no",
        runsText(rule, text, paths, depth, { isSure, isMoved }),
      ] as const;
      best = surest([best, ...found]);
      if (best === "yes") return isSure ? "yes" : "maybe";
    }
  }
  return best;
}

/** How a program takes a text: whether it certainly is a command line, and in another folder. */
interface TextUse {
  readonly isSure: boolean;
  readonly isMoved: boolean;
}

/** Whether the text of a word is a command line that contains a command which the rule matches. */
function runsText(rule: Forbidden, text: string, paths: OperandPaths, depth: number, use: TextUse): Match {
  if (!/[^\w./-]/u.test(text)) return "no";
  const inside = text.length > WORD_CHARS_MAX ? null : simpleCommands(text.replaceAll(EXPANDED, ""));
  const found = (inside ?? []).map((one) => forbids(rule, one, paths, depth + 1));
  const isUnclear = use.isSure && /[\s;&|$`<>]/u.test(text) && (inside === null || changesMeaning(inside, paths));
  const isCalled = callsInside(rule, text, paths, use);
  return surest([...found, isUnclear || isCalled ? "maybe" : "no"]);
}

/** Whether a text names the command in the middle of something else, as a program does: `system("git push")`. */
function callsInside(rule: Forbidden, text: string, paths: OperandPaths, { isMoved }: TextUse): boolean {
  const names = text.split(/[^\w./~@+-]+/u);
  const program = foldText(rule.words[0]!);
  const starts = [...names.keys()].filter((at) => {
    const name = foldText(names[at]!);
    return canBeSame(program, name) || canBeSame(program, programOf(name));
  });
  if (starts.length > STARTS_MAX || (isMoved && starts.length > 0)) return true;
  return starts.some((at) => matches(rule.words, names, paths, at + 1, true) !== "no");
}

/**
 * Matches the pattern's words in order, with options and their values between them, and its options anywhere. The
 * arguments start at `from`, behind the program. `isLenient`: the program may not be one here, so that what is not
 * understood does not count.
 */
function matches(pattern: Words, words: Words, paths: OperandPaths, from: number, isLenient = false): Match {
  if (words.length > WORDS_MAX) return "maybe";
  const order = pattern.slice(1).filter((word) => !word.startsWith("-"));
  const options = pattern.slice(1).filter((word) => word.startsWith("-") && word !== "--");
  const place = inOrder({ program: programOf(pattern[0]!), words: order, paths, isLenient }, words, from);
  if (place === "no") return "no";
  const rest = words.slice(from);
  if (options.every((option) => hasOption(option, rest))) return place;
  // `-f` and `--force` may mean the same, and `+main` is a forced `main`.
  const has = (form: RegExp, all: Words): boolean => all.some((word) => form.test(word));
  const isOtherForm =
    (has(SHORT, options) && has(LONG, rest)) ||
    (has(LONG, options) && has(SHORT, rest)) ||
    has(/^(?:\+|\0[*?[])/u, rest);
  return isOtherForm || rest.some(isWild) ? "maybe" : "no";
}

const SHORT = /^-[^-]/u;
const LONG = /^--./u;

/** What a rule wants after the program, without options. */
interface CommandRule {
  readonly program: string;
  readonly words: Words;
  readonly paths: OperandPaths;
  readonly isLenient: boolean;
}

function inOrder(wanted: CommandRule, words: Words, from: number): Match {
  const { program, isLenient } = wanted;
  const [subcommand] = wanted.words;
  const first = words[from];
  const hasSubcommand = subcommand !== undefined && subcommand !== WILD && !isPlaced(wanted, subcommand);
  // Leading options may define what the next word means (git -c alias.p=push p), and so may settings: git p.
  const isRenamed = hasSubcommand && first?.startsWith("-");
  const isKnown = first === undefined ? null : isSubcommand(program, first);
  const isAlias = hasSubcommand && isKnown === false && !isLenient;
  let strict = passWild(wanted, new Set([0]));
  let loose = strict;
  let isBehindOption = false;
  // Of a program that is not known, any word may be left out: docker container run.
  let mayPass = isKnown === null && !isLenient;
  for (let at = from; at < words.length; at++) {
    const word = words[at]!;
    const isOption = word.startsWith("-");
    mayPass ||= isOption;
    strict = step(wanted, strict, word, isOption || isBehindOption, ["yes"]);
    loose = step(wanted, loose, word, mayPass, isLenient ? ["yes"] : ["yes", "maybe"]);
    isBehindOption = isOption;
    // No reading is left: `loose` contains everything in `strict`.
    if (loose.size === 0) break;
  }
  const { length } = wanted.words;
  if (strict.has(length)) return "yes";
  // A default may stand for what is missing: `git push` for `git push origin main`.
  const count = words.slice(from).filter((word) => !word.startsWith("-")).length;
  const missing = count > 0 && strict.has(count) ? wanted.words[count] : undefined;
  const isCutShort = !isLenient && missing !== undefined && !isPlaced(wanted, missing);
  return loose.has(length) || isRenamed || isAlias || isCutShort ? "maybe" : "no";
}

/** How many of the wanted words have been found, for every possible reading. */
function step(
  wanted: CommandRule,
  before: Set<number>,
  word: string,
  mayPass: boolean,
  enough: readonly Match[],
): Set<number> {
  const after = new Set<number>();
  for (const found of before) {
    const next = wanted.words[found];
    // A rule also matches longer commands.
    const isRef = wanted.program === "git" && found > 1 && enough.includes("maybe");
    if (next === undefined || mayPass || isRef || isPlaced(wanted, next)) after.add(found);
    // A shell wildcard may expand to several words.
    for (let at = found; at < wanted.words.length && enough.includes(fits(wanted, at, word)); at++) {
      after.add(at + 1);
      if (!isWild(word)) break;
    }
  }
  return passWild(wanted, after);
}

function passWild({ words }: CommandRule, found: Set<number>): Set<number> {
  for (const at of found) if (isWildcard(words[at])) found.add(at + 1);
  return found;
}

function isWildcard(word: string | undefined): boolean {
  return word === WILD || word === REST;
}

/** Whether a wanted word matches in any position: a wildcard, and a path. */
function isPlaced({ program }: Pick<CommandRule, "program">, word: string): boolean {
  return isWildcard(word) || takesOperands(program) || isPath(word);
}

function isPath(word: string): boolean {
  return word.includes("/") || word.startsWith(".") || word.startsWith(`${EXPANDED}~`);
}

/** `-rf` also matches `-fr`, `-r -f` and `-vrf`; `--force` also matches `--forc` and `--force=x`. */
function hasOption(option: string, words: Words): boolean {
  if (words.some((word) => canBeSame(foldText(option), foldText(word)))) return true;
  if (LONG.test(option)) {
    const name = nameOf(option);
    return words.some((word) => LONG.test(word) && (nameOf(word).startsWith(name) || name.startsWith(nameOf(word))));
  }
  const letters = [...option.slice(1)];
  // A longer one is a name: `find -delete`.
  if (letters.length > 3 || option.includes(EXPANDED)) return false;
  const given = new Set(words.filter((word) => SHORT.test(word)).flatMap((word) => [...foldText(word.slice(1))]));
  return letters.every((letter) => given.has(foldText(letter)));
}

function nameOf(option: string): string {
  return option.split("=", 1)[0]!.split(EXPANDED, 1)[0]!;
}

function programOf(word: string): string {
  return word.slice(word.lastIndexOf("/") + 1);
}

/** Whether a word is the program that a rule names, by any path. */
function isProgram(wanted: string, word: string, paths: OperandPaths): boolean {
  if (isWildcard(wanted)) return true;
  if (word.length > WORD_CHARS_MAX) return mayStart(wanted, word);
  const names = [word, ...(word.includes("/") ? [word, ...paths.absolute(word)].map(programOf) : [])];
  if (names.some((name) => canBeSame(baseName(wanted), baseName(name)))) return true;
  return isPath(wanted) && word.includes("/") && paths.match(wanted, word) === "yes";
}

/** Without a version: `pip3` and `python3.11` may be `pip` and `python`. */
function baseName(name: string): string {
  return foldText(name).replace(/(?<=[a-z])(?:\.exe|-?\d[\d.]*)$/u, "");
}

/** A longer word is not compared. */
function mayStart(wanted: string, word: string): boolean {
  return word.slice(0, 1) === wanted.slice(0, 1) || wanted.startsWith(WILD);
}

/** Whether a word may be the one that a rule wants at this place, in any spelling. */
function fits(wanted: CommandRule, at: number, word: string): Match {
  const one = wanted.words[at]!;
  if (isWildcard(one)) return "yes";
  if (word.length > WORD_CHARS_MAX) return mayStart(one, word) ? "yes" : "no";
  const { program, paths } = wanted;
  const [want, given] = [one, word].map((text) => foldText(at === 0 ? canonical(program, text) : text)) as [
    string,
    string,
  ];
  if (canBeSame(want, given) || canBeSame(want, posix.normalize(given))) return "yes";
  // Git expands patterns itself.
  const isPattern = program === "git" && at > 0 && /^:|[*?[]/u.test(given);
  if (isPlaced(wanted, one)) return surest([paths.match(one, word), isPattern ? "maybe" : "no"]);
  // A program may take the start of a word for the whole (kubectl del), and git names what it pushes in many ways.
  const isStart = at === 0 && given !== "" && want.startsWith(given);
  return isStart || isPattern || (program === "git" && at > 0 && mayBeRef(wanted.words[0]!, at, want, given))
    ? "maybe"
    : "no";
}
