import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { defined } from "../../defined.ts";
import { homeFolder } from "../../home.ts";
import { onDisk } from "../../store/address.ts";
import { foldedNames } from "../paths/file-names.ts";
import { isInside, PATH_TOOLS, realPath, shownPath } from "../paths/real-path.ts";
import { isRunLater } from "../paths/run-later-files.ts";
import { isSecret } from "../paths/secret-files.ts";
import { allowsCommand, changesMeaning, forbidsCommand, forbidsLine, namesEveryCommand } from "./command-rules.ts";
import { isLeaf } from "./leaf-commands.ts";
import { namesPath, type Places, parseRule, type Rule } from "./rules.ts";
import { simpleCommands, trimmedLine } from "./shell-words.ts";

export { checkRule } from "./rules.ts";

/**
 * What the agent may do by itself. The first of these that applies decides: a rule that denies, a rule that asks, a
 * guarded file, a rule that allows, the default.
 *
 * By default the agent may read, list and search inside its working folder, and read what its own commands printed; it
 * asks about everything else. Guarded are files that look like secrets, the store, the configuration, and for writing
 * the files that make other programs run something (hooks, workflows, start files): only a rule that names that very
 * file allows those, and not `*`. Paths are judged by where they lead.
 *
 * Each command of a line must be allowed. A line that cannot be taken apart into simple commands, or in which a command
 * changes what the next ones mean (`cd`), is allowed only by its exact text, by `shell` and by `*`. If any rule denies
 * or asks about commands, `shell`, `shell(*)` and `*` allow only commands that are known to run no others
 * (leaf-commands.ts): anything else could run the denied one. How words are compared: command-rules.ts.
 *
 * Rules for the shell judge commands, not what they do: `shell(npm *)` runs whatever package.json says, and a command
 * that may read files may read all of them. On Windows, where cmd.exe reads a line in other ways, no rule looks at
 * words.
 */
export interface Policy {
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
}

export interface RequestedCall {
  readonly name: string;
  readonly input: unknown;
}

export interface PolicyContext {
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
  /** Of this machine, unless told. */
  readonly platform?: string;
  /** Whether a file has a second name elsewhere (a hard link); by the file system, unless told. */
  readonly hasOtherName?: (path: string) => boolean;
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
export function decide(call: RequestedCall, context: PolicyContext): Decision {
  const facts = new CallFacts(call, context);
  const { verdict, rule } = verdictOf(facts, context);
  const suggestion = suggestionFor(facts, context.cwd);
  return {
    verdict,
    ...defined({ rule }),
    suggestion,
    summary: summaryOf(facts, context.cwd),
    denial: denialOf(verdict, rule, suggestion),
  };
}

/** What a search or a listing leaves out, by real paths: what a rule forbids or asks for, and what is guarded. */
export function makeSearchFilter(context: PolicyContext): (path: string) => boolean {
  const { policy } = context;
  const { allow } = policy;
  // Once, and not for each file: where the store and the configuration are in truth.
  const inTruth = (path: string | null): string | null =>
    path && leadsTo(context.realPath ?? realPath, context.cwd, path);
  const store = inTruth(placeOf(context.store));
  const config = inTruth(context.config ?? null);
  const state = inTruth(context.state ?? null);
  const allOutputs = inTruth(context.allOutputs ?? null);
  const known = {
    ...context,
    ...(store === null ? {} : { store }),
    ...(config === null ? {} : { config }),
    ...(state === null ? {} : { state }),
    ...(allOutputs === null ? {} : { allOutputs }),
    realPath: (_cwd: string, path: string): string => path,
  };
  return (path) =>
    ["read", "search", "list"].some((name) => {
      const facts = new CallFacts({ name, input: { path } }, known);
      if (forbidding(policy.deny, facts) ?? forbidding(policy.ask, facts)) return true;
      return facts.isGuarded && !allow.some((text) => allows(parseRule(text), facts));
    });
}

/** For the model, when a person has said no. */
export function refusal(reason?: string): string {
  const why = reason === undefined || reason.trim() === "" ? "." : `: ${reason.trim()}`;
  return `The user did not allow this call: it did not run${why} Do not try to achieve the same by other means; continue without it, or ask what to do instead.`.replace(
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

/** A call, with everything that rules look at. */
class CallFacts {
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
  /** The words of each command mean what they say. */
  readonly isClear: boolean = false;
  readonly isWindows: boolean;
  readonly isGuarded: boolean = false;
  readonly isOwnOutput: boolean = false;

  constructor({ name, input }: RequestedCall, options: PolicyContext) {
    const { cwd, home = homeFolder() ?? NOWHERE, store, config, state, outputs, allOutputs } = options;
    this.name = name;
    this.input = input;
    this.places = { cwd, home };
    this.isWindows = (options.platform ?? process.platform) === "win32";
    if (name === "shell") {
      this.command = textOf(input, "command");
      this.commands = this.command === null || this.isWindows ? null : simpleCommands(this.command);
      this.isClear = this.commands !== null && this.commands.length > 0 && !changesMeaning(this.commands, this.places);
    }
    if (!PATH_TOOLS.has(name)) return;
    const path = textOf(input, "path") ?? (hasDefaultPath(name, input) ? "." : null);
    if (path === null) return;
    this.given = resolve(cwd, path.replaceAll("\0", "\uFFFD"));
    const real = options.realPath ?? realPath;
    this.path = leadsTo(real, cwd, path);
    const printed = outputs === undefined ? null : leadsTo(real, cwd, outputs);
    const isReading = name === "read" || name === "search" || name === "list";
    this.isOwnOutput =
      isReading &&
      printed !== null &&
      this.path !== null &&
      isInside(printed, this.path) &&
      !(options.hasOtherName ?? hasOtherName)(this.path);
    if (this.isOwnOutput) return;
    const isWriting = name === "write" || name === "edit";
    const place = placeOf(store);
    // By its name and by where that leads: the folder of a store may be a link.
    const stores = [place, allOutputs ?? null, config ?? null, state ?? null].flatMap((own) =>
      own === null ? [] : [own, leadsTo(real, cwd, own) ?? own],
    );
    const guarded = (one: string): boolean => {
      if (isSecret(one) || (isWriting && isRunLater(one))) return true;
      const names = foldedNames(one);
      return stores.some((place) => isOfStore(names, place));
    };
    this.isGuarded = [this.given, ...(this.path === null ? [] : [this.path])].some(guarded);
  }

  get isInside(): boolean {
    return this.path !== null && isInside(this.places.cwd, this.path);
  }
}

/** Somebody who prepares a store can put a second name of another file of this user among the outputs. */
function hasOtherName(path: string): boolean {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isFile() === true && found.nlink > 1;
  } catch (error) {
    // Nobody can look at it: then it is not known to be an output.
    if (error instanceof Error) return true;
    throw error;
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

/**
 * A database has files beside it that begin with its name. Names are compared as a file system may take them that
 * ignores case.
 */
function isOfStore(path: readonly string[], place: string): boolean {
  const own = foldedPlace(place);
  const last = own.length - 1;
  const isBeside = path.length === own.length && path[last]!.startsWith(`${own[last]}-`);
  return own.every((name, at) => path[at] === name || (at === last && isBeside));
}

const PLACES_MAX = 64;
const foldedPlaces = new Map<string, readonly string[]>();

/** The same few places are compared with every file of a search. */
function foldedPlace(place: string): readonly string[] {
  const known = foldedPlaces.get(place);
  if (known) return known;
  if (foldedPlaces.size >= PLACES_MAX) foldedPlaces.clear();
  const names = foldedNames(place);
  while (names.length > 1 && names.at(-1) === "") names.pop();
  foldedPlaces.set(place, names);
  return names;
}

function verdictOf(facts: CallFacts, { policy }: PolicyContext): { verdict: Decision["verdict"]; rule?: string } {
  const denied = forbidding(policy.deny, facts);
  if (denied !== null) return { verdict: "deny", rule: denied };
  const asked = forbidding(policy.ask, facts);
  if (asked !== null) return { verdict: "ask", rule: asked };
  const allowing = facts.name === "shell" ? allowingCommand(facts, policy) : allowingCall(facts, policy);
  if (allowing !== null) return { verdict: "allow", rule: allowing };
  const isReading = facts.name === "read" || facts.name === "list" || facts.name === "search";
  const isFree = facts.isOwnOutput || (isReading && facts.isInside && !facts.isGuarded);
  return { verdict: isFree ? "allow" : "ask" };
}

function allowingCall(facts: CallFacts, { allow }: Policy): string | null {
  return allow.find((text) => allows(parseRule(text), facts)) ?? null;
}

/** The rule that allows a line as a whole, or the rules that allow each of its commands. */
function allowingCommand(facts: CallFacts, policy: Policy): string | null {
  const { command, commands, places } = facts;
  if (command === null) return null;
  const restricting = [...policy.deny, ...policy.ask].flatMap((text) => parseRule(text) ?? []).filter(isForShell);
  const allow = policy.allow.flatMap((text) => parseRule(text) ?? []).filter(isForShell);
  const isWhole = (rule: Rule): boolean => {
    if (rule.pattern === null) return restricting.length === 0;
    if (rule.isExact && trimmedLine(command) === trimmedLine(rule.pattern))
      return !facts.isWindows || rule.isLiteral === true;
    return restricting.length === 0 && commands !== null && commands.length > 0 && namesEveryCommand(rule);
  };
  const whole = allow.find(isWhole);
  if (whole) return whole.text;
  if (!facts.isClear || commands === null) return null;
  const mayBeForbidden = (words: readonly string[]): boolean =>
    restricting.some((rule) => forbidsCommand(rule, words, places) !== "no");
  const each = commands.map((words) => {
    const isInDoubt = mayBeForbidden(words);
    return allow.find((rule) => {
      if (namesEveryCommand(rule)) return !isInDoubt && isLeaf(words);
      return (rule.isExact || !isInDoubt) && allowsCommand(rule, words);
    })?.text;
  });
  return each.includes(undefined) ? null : [...new Set(each)].join(", ");
}

function isForShell({ tool }: Rule): boolean {
  return tool === "shell" || tool === "*";
}

/** The first rule that names any part of the call. */
function forbidding(rules: readonly string[], facts: CallFacts): string | null {
  return rules.find((text) => forbids(text, facts)) ?? null;
}

function forbids(text: string, facts: CallFacts): boolean {
  const rule = parseRule(text);
  // A rule that was meant to forbid, and cannot be read, forbids all that it could have meant.
  if (!rule) {
    const tool = /^\s*([A-Za-z_][\w.:/-]*)\s*\(/u.exec(text)?.[1];
    return tool === undefined || tool === facts.name;
  }
  if (rule.tool === "*") return true;
  if (rule.tool !== facts.name) return false;
  if (rule.pattern === null) return true;
  const { command, commands, path, given, places, name } = facts;
  // On Windows its words cannot be compared, so any command may be the one.
  if (name === "shell") return command === null || facts.isWindows || forbidsLine(rule, command, commands, places);
  // By the name that was used, and by where that leads.
  return [path, given].some((one) => one !== null && namesPath(rule, name, one, places, true));
}

/** For all tools but the shell. */
function allows(rule: Rule | null, facts: CallFacts): boolean {
  if (!rule) return false;
  if (rule.tool === "*") return !facts.isGuarded;
  if (rule.tool !== facts.name) return false;
  const { path, places, name, isGuarded } = facts;
  if (!PATH_TOOLS.has(name)) return rule.pattern === null;
  if (path === null) return false;
  if (rule.pattern === null) return facts.isInside && !isGuarded;
  return (rule.isExact || !isGuarded) && namesPath(rule, name, path, places, false);
}

/** Never the bare name of a tool that looks at paths or commands: that would allow all of them. */
function suggestionFor({ name, path, given, command, isWindows }: CallFacts, cwd: string): string {
  const place = path ?? given;
  const text = command === null ? (place === null ? null : escapeHome(shownPath(cwd, place))) : trimmedLine(command);
  if (text === null) return name;
  const isLine = command !== null && isWindows;
  const needsMark = isLine || text === "" || text.includes("*") || text.startsWith("=") || text !== text.trim();
  return `${name}(${needsMark ? "=" : ""}${text})`;
}

/** A name that begins so is not the home folder. */
function escapeHome(path: string): string {
  return path.startsWith("~") ? `./${path}` : path;
}

const SUMMARY_CHARS_MAX = 200;

function summaryOf({ name, path, command, input }: CallFacts, cwd: string): string {
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
    return `This call did not run: the user's rules deny it (${rule}). Do not try to achieve the same by other means; continue without it, or say what you would need.`;
  }
  return `This call did not run: no rule allows it, and nobody is available to approve it. Continue without it, or say what you would need. (The user can allow it with ${allowFlag(suggestion)}.)`;
}
