import { basename, resolve, sep } from "node:path";
import { homeFolder } from "../home.ts";
import { onDisk } from "../store/address.ts";
import { isInside, realPath, shownPath } from "./real-path.ts";
import {
  allowsCommand,
  allowsHidden,
  forbidsCommand,
  hidesCommand,
  namesPath,
  PATH_TOOLS,
  type Places,
  parseRule,
  type Rule,
} from "./rules.ts";
import { isSecret } from "./secrets.ts";
import { simpleCommands } from "./shell-words.ts";

export { checkRule } from "./rules.ts";

/**
 * What the agent may do by itself. A call is judged by the first of these that says something: a rule that denies, a rule that asks, what is guarded, a rule that allows, the default.
 *
 * By default, reading, listing and searching inside of the working folder is allowed, and reading what a command has printed; everything else is asked for. Guarded are files that look like secrets, the store itself, and writing below `.git`: only a rule
 * that names that very path allows it, or `*`. Rules judge where a path leads in truth, and never a part of what a call does: each command of a line must be allowed. A line that cannot be taken apart into simple commands
 * (substitutions, redirections, loops) is allowed only by its exact text, by `shell` and by `*`, and by those two only if no rule forbids or asks for some commands. Beside such a rule, those two do not allow commands that run others either (`xargs`,
 * `sh -c`, `env`), nor does `shell(git *)` allow `git -C . push` beside one that forbids `git push`. A rule that forbids or asks names all longer commands that begin as it does.
 *
 * Rules for the shell judge commands, not what these do: `shell(npm *)` runs whatever package.json says, and a command that may read files may read all of them.
 */
export interface Policy {
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
}

export interface JudgedCall {
  readonly name: string;
  readonly input: unknown;
}

export interface Circumstances {
  /** The folder that the agent works in; a real path. */
  readonly cwd: string;
  readonly policy: Policy;
  /** The address of the store: the agent does not touch its own journal unasked. */
  readonly store?: string;
  /** The file of the configuration: the agent does not give itself more unasked. */
  readonly config?: string;
  /** Where it is kept what the user allowed: the same. */
  readonly state?: string;
  /** Where the whole output of commands is kept: the agent may read what its tools have printed. */
  readonly outputs?: string;
  /** Where those of all sessions are, which may be beside the store: what others have printed is asked for. */
  readonly allOutputs?: string;
  readonly home?: string;
  /** Where a path leads; that of the file system, unless told. */
  readonly realPath?: (cwd: string, path: string) => string;
}

export interface Decision {
  readonly verdict: "allow" | "ask" | "deny";
  /** The rule that decided; none if it was the default, or a guarded file. */
  readonly rule?: string;
  /** The rule that would allow exactly this, for `--allow`. */
  readonly suggestion: string;
  /** What it would do, on one line. */
  readonly summary: string;
  /** For the model, if it is not to run: because a rule denies it, or because nobody is there to be asked. */
  readonly denial: string;
}

/** Answers for every call, whatever its input; never throws. */
export function decide(call: JudgedCall, circumstances: Circumstances): Decision {
  const judged = new Judged(call, circumstances);
  const { verdict, rule } = verdictOf(judged, circumstances);
  const suggestion = suggestionFor(judged, circumstances.cwd);
  return {
    verdict,
    ...(rule === undefined ? {} : { rule }),
    suggestion,
    summary: summaryOf(judged, circumstances.cwd),
    denial: denialOf(verdict, rule, suggestion),
  };
}

/** What a search or a listing leaves out, by real paths: what a rule forbids or asks for, and what is guarded. */
export function passedOver(circumstances: Circumstances): (path: string) => boolean {
  const { policy } = circumstances;
  const { allow } = policy;
  // Once, and not for each file: where the store and the configuration are in truth.
  const inTruth = (path: string | null): string | null =>
    path && leadsTo(circumstances.realPath ?? realPath, circumstances.cwd, path);
  const store = inTruth(placeOf(circumstances.store));
  const config = inTruth(circumstances.config ?? null);
  const allOutputs = inTruth(circumstances.allOutputs ?? null);
  const known = {
    ...circumstances,
    ...(store === null ? {} : { store }),
    ...(config === null ? {} : { config }),
    ...(allOutputs === null ? {} : { allOutputs }),
    realPath: (_cwd: string, path: string): string => path,
  };
  return (path) =>
    ["read", "search", "list"].some((name) => {
      const judged = new Judged({ name, input: { path } }, known);
      if (forbidding(policy.deny, judged) ?? forbidding(policy.ask, judged)) return true;
      return judged.isGuarded && !allow.some((text) => allows(parseRule(text), judged));
    });
}

/** For the model, when a person has said no. */
export function refusal(reason?: string): string {
  const why = reason === undefined || reason.trim() === "" ? "." : `: ${reason.trim()}`;
  return `The user did not allow this call: it did not run${why} Do not try to reach the same by other means; go on without it, or ask what to do instead.`.replace(
    /([^.!?]) Do not/u,
    "$1. Do not",
  );
}

/** As it is typed: in quotes for a shell. */
export function allowFlag(suggestion: string): string {
  return `--allow '${suggestion.replaceAll("'", `'\\''`)}'`;
}

/** In the place of a home that is not there: no path leads to it, so no rule with ~ means any. */
const NOWHERE = "/\0";

/** A call, with all that rules look at. */
class Judged {
  readonly name: string;
  readonly input: unknown;
  readonly places: Places;
  /** Where the path leads in truth; null if the tool has none, or it cannot be said. */
  readonly path: string | null = null;
  /** The path as it was given, made absolute. */
  readonly given: string | null = null;
  readonly command: string | null = null;
  /** Of the command; null if it cannot be taken apart. */
  readonly commands: readonly (readonly string[])[] | null = null;
  readonly isGuarded: boolean = false;
  readonly isOwnOutput: boolean = false;

  constructor({ name, input }: JudgedCall, options: Circumstances) {
    const { cwd, home = homeFolder() ?? NOWHERE, store, config, state, outputs, allOutputs } = options;
    this.name = name;
    this.input = input;
    this.places = { cwd, home };
    if (name === "shell") {
      this.command = textOf(input, "command");
      this.commands = this.command === null ? null : simpleCommands(this.command);
    }
    if (!PATH_TOOLS.has(name)) return;
    const path = textOf(input, "path") ?? (hasDefaultPath(name, input) ? "." : null);
    if (path === null) return;
    this.given = resolve(cwd, path.replaceAll("\0", "\uFFFD"));
    const real = options.realPath ?? realPath;
    this.path = leadsTo(real, cwd, path);
    const printed = outputs === undefined ? null : leadsTo(real, cwd, outputs);
    const isReading = name === "read" || name === "search";
    this.isOwnOutput = isReading && printed !== null && this.path !== null && isInside(printed, this.path);
    if (this.isOwnOutput) return;
    const isWriting = name === "write" || name === "edit";
    const place = placeOf(store);
    // By its name and by where that leads: the folder of a store may be a link.
    const stores = [place, allOutputs ?? null, config ?? null, state ?? null].flatMap((own) =>
      own === null ? [] : [own, leadsTo(real, cwd, own) ?? own],
    );
    const guarded = (one: string): boolean =>
      isSecret(one) ||
      stores.some((place) => isOfStore(one, place)) ||
      (isWriting && one.toLowerCase().split(sep).includes(".git"));
    this.isGuarded = [this.given, ...(this.path === null ? [] : [this.path])].some(guarded);
  }

  get isInside(): boolean {
    return this.path !== null && isInside(this.places.cwd, this.path);
  }
}

function hasDefaultPath(name: string, input: unknown): boolean {
  const isTree = name === "list" || name === "search";
  return isTree && (typeof input !== "object" || input === null || (input as { path?: unknown }).path === undefined);
}

function leadsTo(real: (cwd: string, path: string) => string, cwd: string, path: string): string | null {
  try {
    return real(cwd, path);
  } catch (error) {
    // Nobody can say where it leads: no rule allows that, and the tool will say what is wrong.
    if (error instanceof Error) return null;
    throw error;
  }
}

function textOf(input: unknown, member: string): string | null {
  const value = typeof input === "object" && input !== null ? (input as Record<string, unknown>)[member] : undefined;
  return typeof value === "string" ? value : null;
}

/** Where the store is on the disk; null if it is elsewhere, or there is none. */
function placeOf(store: string | undefined): string | null {
  return store === undefined ? null : (onDisk(store)?.path ?? null);
}

/** A database has files beside it that begin with its name. */
function isOfStore(path: string, place: string): boolean {
  return isInside(place, path) || (path.startsWith(`${place}-`) && basename(path).startsWith(basename(place)));
}

function verdictOf(judged: Judged, { policy }: Circumstances): { verdict: Decision["verdict"]; rule?: string } {
  const denied = forbidding(policy.deny, judged);
  if (denied !== null) return { verdict: "deny", rule: denied };
  const asked = forbidding(policy.ask, judged);
  if (asked !== null) return { verdict: "ask", rule: asked };
  // Some commands are not to run unasked, and nobody can tell whether this line runs one of them.
  const patterns = shellPatterns(policy);
  const isUnclear =
    judged.name === "shell" &&
    patterns.length > 0 &&
    (judged.commands?.some((words) => hidesCommand(words, patterns)) ?? true);
  const allow = isUnclear ? policy.allow.filter((text) => !isTooWide(parseRule(text), judged, patterns)) : policy.allow;
  for (const text of allow) if (allows(parseRule(text), judged)) return { verdict: "allow", rule: text };
  const together = judged.commands === null ? null : eachAllowed(allow, judged.commands);
  if (together !== null) return { verdict: "allow", rule: together };
  const isReading = judged.name === "read" || judged.name === "list" || judged.name === "search";
  const isFree = judged.isOwnOutput || (isReading && judged.isInside && !judged.isGuarded);
  return { verdict: isFree ? "allow" : "ask" };
}

/** Several commands may be allowed by a rule each. */
function eachAllowed(allow: readonly string[], commands: readonly (readonly string[])[]): string | null {
  const shell = allow.flatMap((text) => parseRule(text) ?? []).filter(({ tool }) => tool === "shell");
  const rules = commands.map((words) => shell.find((rule) => allowsCommand(rule, words))?.text);
  return rules.length === 0 || rules.includes(undefined) ? null : [...new Set(rules)].join(", ");
}

/** Rules that forbid or ask for some commands. */
function shellPatterns({ deny, ask }: Policy): Rule[] {
  return [...deny, ...ask].flatMap((text) => parseRule(text) ?? []).filter(({ tool }) => tool === "shell");
}

/** It allows whatever command there is, or whatever its command may be told by options. */
function isTooWide(rule: Rule | null, { commands }: Judged, patterns: readonly Rule[]): boolean {
  if (rule?.pattern === null) return true;
  if (rule?.tool !== "shell") return false;
  return (rule.pattern === "*" && !rule.isExact) || allowsHidden(rule, commands ?? [], patterns);
}

/** The first rule that names any part of the call. */
function forbidding(rules: readonly string[], judged: Judged): string | null {
  return rules.find((text) => forbids(text, judged)) ?? null;
}

function forbids(text: string, judged: Judged): boolean {
  const rule = parseRule(text);
  // A rule that was meant to forbid, and cannot be read, forbids all that it could have meant.
  if (!rule) {
    const tool = /^\s*([A-Za-z_][\w.:/-]*)\s*\(/u.exec(text)?.[1];
    return tool === undefined || tool === judged.name;
  }
  if (rule.tool === "*") return true;
  if (rule.tool !== judged.name) return false;
  if (rule.pattern === null) return true;
  const { command, commands, path, given, places, name } = judged;
  if (command !== null) {
    if (command.trim() === rule.pattern.trim()) return true;
    return commands?.some((words) => forbidsCommand(rule, words)) ?? false;
  }
  // By the name that was used, and by where that leads.
  return [path, given].some((one) => one !== null && namesPath(rule, name, one, places, true));
}

function allows(rule: Rule | null, judged: Judged): boolean {
  if (!rule) return false;
  if (rule.tool === "*") return true;
  if (rule.tool !== judged.name) return false;
  const { command, commands, path, places, name, isGuarded } = judged;
  if (name === "shell") {
    if (command === null) return false;
    if (rule.pattern === null || (rule.isExact && command.trim() === rule.pattern.trim())) return true;
    return commands?.length === 1 && allowsCommand(rule, commands[0]!);
  }
  if (!PATH_TOOLS.has(name)) return rule.pattern === null;
  if (path === null) return false;
  if (rule.pattern === null) return judged.isInside && !isGuarded;
  return (rule.isExact || !isGuarded) && namesPath(rule, name, path, places, false);
}

/** Never the bare name of a tool that looks at paths or commands: that would allow all of them. */
function suggestionFor({ name, path, given, command }: Judged, cwd: string): string {
  const place = path ?? given;
  const text = command === null ? (place === null ? null : ruled(shownPath(cwd, place))) : command.trim();
  if (text === null) return name;
  const needsMark = text === "" || text.includes("*") || text.startsWith("=") || text !== text.trim();
  return `${name}(${needsMark ? "=" : ""}${text})`;
}

/** A name that begins so is not the home folder. */
function ruled(path: string): string {
  return path.startsWith("~") ? `./${path}` : path;
}

const SUMMARY_CHARS_MAX = 200;

function summaryOf({ name, path, command, input }: Judged, cwd: string): string {
  const what =
    command !== null
      ? `run ${command}`
      : path !== null
        ? `${name} ${shownPath(cwd, path)}${aside(name, input)}`
        : `${name} ${asJson(input)}`;
  // What a model wrote must not move the cursor of who reads it.
  const line = what
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .replaceAll(/ +/gu, " ")
    .trim();
  return line.length <= SUMMARY_CHARS_MAX ? line : `${line.slice(0, SUMMARY_CHARS_MAX - 1).toWellFormed()}…`;
}

function aside(name: string, input: unknown): string {
  if (name === "search") return ` for ${textOf(input, "pattern") ?? ""}`;
  const content = name === "write" ? textOf(input, "content") : null;
  return content === null ? "" : ` (${content.length} characters)`;
}

function asJson(input: unknown): string {
  try {
    return JSON.stringify(input) ?? "";
  } catch (error) {
    // An input that cannot be shown is judged all the same.
    return error instanceof Error ? "(an input that cannot be shown)" : "";
  }
}

function denialOf(verdict: Decision["verdict"], rule: string | undefined, suggestion: string): string {
  if (verdict === "deny") {
    return `This call did not run: the user's rules deny it (${rule}). Do not try to reach the same by other means; go on without it, or say what you would need.`;
  }
  return `This call did not run: no rule allows it, and nobody is there to be asked. Go on without it, or say what you would need. (The user can allow it with ${allowFlag(suggestion)}.)`;
}
