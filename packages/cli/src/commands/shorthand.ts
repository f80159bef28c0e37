import { CommandError, EXIT } from "../exit.ts";

/**
 * What people type who are used to other agents: `holdfast "prompt"`, `-c`, `-p`, `-m`. Translated into the commands
 * `chat` and `run` before anything is parsed.
 */

/** Options that take the next argument as their value. */
const WITH_VALUE = new Set([
  "--store",
  "-m",
  "--model",
  "--base-url",
  "--allow",
  "--ask",
  "--deny",
  "--window-tokens",
  "--title",
]);
/** Their value may be missing. */
const WITH_VALUE_MAYBE = new Set(["-r", "--resume"]);

interface Parsed {
  /** Options before the first word, each with its value. */
  readonly options: readonly string[];
  /** Their names. */
  readonly names: ReadonlySet<string>;
  readonly words: readonly string[];
  /** `--` stands before the words. */
  readonly isLiteral: boolean;
}

/**
 * The arguments as `chat` or `run` takes them; unchanged if they name a command. `hasInput`: standard input is a pipe
 * or a file. Throws CommandError USAGE for a word that is neither a command nor clearly a prompt: a typo must not reach
 * a model. Pure.
 */
export function expandShorthand(args: readonly string[], commands: readonly string[], hasInput: boolean): string[] {
  const { options, names, words, isLiteral } = split(args);
  const has = (...wanted: readonly string[]): boolean => wanted.some((name) => names.has(name));
  // The program has one short name for it, and people use both.
  if (has("-V")) return ["--version"];
  if (has("-h", "--help", "-v", "--version")) return [...args];
  const [first] = words;
  if (has("-p", "--print"))
    return ["run", ...(hasInput && first !== undefined ? ["--stdin"] : []), ...options, ...promptFirst(words)];
  const isChat = has("-c", "--continue", "-r", "--resume");
  if (first === undefined) return isChat || has("-m", "--model") ? ["chat", ...options] : [...args];
  if (!isLiteral && commands.includes(first)) return [first, ...options, ...words.slice(1)];
  if (!isLiteral && !isChat && isWord(first)) throw unknownCommand(words, commands);
  return ["chat", ...options, ...promptFirst(words)];
}

function split(args: readonly string[]): Parsed {
  const options: string[] = [];
  const names = new Set<string>();
  let at = 0;
  for (; at < args.length; at++) {
    const arg = args[at]!;
    if (!arg.startsWith("-") || arg === "-" || arg === "--") break;
    // Short options that take no value can share a dash.
    const all = /^-[cp]{2,}$/.test(arg) ? [...arg.slice(1)].map((letter) => `-${letter}`) : [arg.replace(/=.*/s, "")];
    for (const name of all) names.add(name);
    options.push(...(all.length > 1 ? all : [arg]).filter((one) => one !== "-p" && one !== "--print"));
    const next = args[at + 1];
    const takesNext = WITH_VALUE.has(arg) || (WITH_VALUE_MAYBE.has(arg) && next !== undefined && !next.startsWith("-"));
    if (takesNext && next !== undefined) {
      options.push(next);
      at++;
    }
  }
  const isLiteral = args[at] === "--";
  return { options, names, words: args.slice(isLiteral ? at + 1 : at), isLiteral };
}

/** A prompt may start with a dash; options may follow it, as they may follow a command. */
function promptFirst(words: readonly string[]): string[] {
  const [prompt, ...rest] = words;
  if (prompt === undefined) return [];
  return prompt.startsWith("-") && prompt !== "-" ? [...rest, "--", prompt] : [prompt, ...rest];
}

/** One word of plain ASCII could be a mistyped command, so it is never a prompt by itself. */
function isWord(text: string): boolean {
  return /^[\x21-\x7e]*$/.test(text);
}

const SHOWN_MAX = 60;

function unknownCommand(words: readonly string[], commands: readonly string[]): CommandError {
  const [word = ""] = words;
  const similar = similarTo(word, commands);
  const meant = similar === null ? '"holdfast --help" lists the commands.' : `Did you mean "holdfast ${similar}"?`;
  const prompt = words.every((one) => !one.startsWith("-")) ? words.join(" ") : word;
  const shown = prompt.length > SHOWN_MAX ? `${prompt.slice(0, SHOWN_MAX).toWellFormed()}…` : prompt;
  const how =
    words.length > 1
      ? `To send a prompt, put it in quotes: holdfast "${shown}"`
      : `To send this word as a prompt: holdfast chat "${shown}"`;
  const first = `Unknown command "${word.slice(0, SHOWN_MAX).toWellFormed()}". ${meant} Nothing was sent.`;
  return new CommandError(EXIT.usage, "USAGE", `${first}\n  ${how}`);
}

/** The command that the user most likely meant; null if none is close. */
export function similarTo(word: string, commands: readonly string[]): string | null {
  const given = word.slice(0, 40).toLowerCase();
  let best: string | null = null;
  let least = given.length <= 5 ? 1.5 : 2.5;
  // Hidden commands have a dash in their names.
  for (const command of commands.filter((name) => !name.includes("-"))) {
    const isBeginning = command !== given && command.startsWith(given) && given.length > 1;
    const distance = isBeginning ? 1 : distanceOf(given, command);
    if (distance >= least) continue;
    least = distance;
    best = command;
  }
  return best ?? FAMILIAR.get(given) ?? null;
}

/** What the same is called elsewhere. */
const FAMILIAR = new Map([
  ["list", "ls"],
  ["sessions", "ls"],
  ["history", "ls"],
  ["delete", "rm"],
  ["remove", "rm"],
  ["undelete", "restore"],
  ["continue", "chat --continue"],
  ["exec", "run"],
  ["print", "run"],
  ["cat", "show"],
  ["view", "show"],
  ["find", "search"],
  ["grep", "search"],
  ["follow", "tail -f"],
  ["branch", "fork"],
  ["mv", "rename"],
  ["doctor", "verify"],
  ["check", "verify"],
  ["compress", "pack"],
  ["settings", "config"],
  ["version", "--version"],
]);

/** Edits between two short words; two swapped letters count as one. */
function distanceOf(one: string, other: string): number {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      let least = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwapped) least = Math.min(least, rows[i - 2]![j - 2]! + 1);
      row.push(least);
    }
    rows.push(row);
  }
  return rows[one.length]![other.length]!;
}
