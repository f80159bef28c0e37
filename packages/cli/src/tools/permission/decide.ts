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
import { OperandPaths } from "./operand-paths.ts";
import type { Places, Rule } from "./rule.ts";
import { namesPath, namesTool, parseRule } from "./rules.ts";
import { simpleCommands, trimmedLine } from "./shell-words.ts";

export { checkRule } from "./rules.ts";

/**
 * What the agent may do without asking. The first of these that applies decides: a rule that denies, a rule that asks,
 * a guarded file, a rule that allows, the default.
 *
 * By default the agent may read, list and search inside its working folder, and read the output of its own commands; it
 * asks about everything else. Guarded files are those that look like secrets, the store, the configuration, saved
 * approvals and, for writing, files that make other programs run something (hooks, workflows, startup files): only a
 * rule that names the very file allows them, not `*`. Paths are judged by where they lead.
 *
 * Each command of a line must be allowed. A line in which a command changes what later ones mean (`cd`) is allowed only
 * by its exact text, `shell`, `shell(*)` or `*`; one that cannot be parsed into simple commands, not by `shell(*)`. If
 * any rule denies or asks about commands, `shell`, `shell(*)` and `*` allow only commands known to run no others
 * (leaf-commands.ts): anything else could run the denied one. command-rules.ts defines how words are compared.
 *
 * Shell rules judge commands, not their effects: `shell(npm *)` runs anything in package.json, and a command that may
 * read files may read all of them. On Windows, where cmd.exe parses lines differently, no rule looks at words.
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
  /** The agent's working folder; a real path. */
  readonly cwd: string;
  readonly policy: Policy;
  /** The address of the store: the agent does not touch its own journal without asking. */
  readonly store?: string;
  /** The configuration file: the agent does not extend its own permissions without asking. */
  readonly config?: string;
  /** The rules for projects: guarded for the same reason. */
  readonly rules?: string;
  /** Where the user's approvals are stored: guarded for the same reason. */
  readonly state?: string;
  /** Where this session's command outputs are kept: the agent may read them. */
  readonly outputs?: string;
  /** Where the outputs of all sessions are, possibly beside the store: those of other sessions need approval. */
  readonly allOutputs?: string;
  readonly home?: string;
  /** Default: this machine's platform. */
  readonly platform?: string;
  /** Whether a file has a second name elsewhere (a hard link). Default: ask the file system. */
  readonly hasOtherName?: (path: string) => boolean;
  /** Resolves a path. Default: on the file system. */
  readonly realPath?: (cwd: string, path: string) => string;
}

export interface Decision {
  readonly verdict: "allow" | "ask" | "deny";
  /** The rule that decided; absent for the default or a guarded file. */
  readonly rule?: string;
  /** The rule that would allow exactly this call, for `--allow`. */
  readonly suggestion: string;
  /** Whether that rule would help: not if another rule asks or denies, or if the path cannot be resolved. */
  readonly isAllowable: boolean;
  /** What the call would do, on one line. */
  readonly summary: string;
  /** For the model, if the call does not run: a rule denies it, or nobody is there to ask. */
  readonly denial: string;
}

/** Decides any call, whatever its input; never throws. */
export function decide(call: RequestedCall, context: PolicyContext): Decision {
  const facts = new CallFacts(call, context);
  const { verdict, rule } = verdictOf(facts, context);
  const suggestion = suggestionFor(facts, context.cwd);
  const { policy } = context;
  const wider = { ...context, policy: { ...policy, allow: [...policy.allow, suggestion] } };
  return {
    verdict,
    ...defined({ rule }),
    suggestion,
    isAllowable: verdict === "allow" || verdictOf(facts, wider).verdict === "allow",
    summary: summaryOf(facts, context.cwd),
    denial: denialOf(verdict, rule, suggestion),
  };
}

/**
 * Whether a search or listing skips a real path: a rule denies it or asks about it, or it is guarded and not allowed.
 */
export function makeSearchFilter(context: PolicyContext): (path: string) => boolean {
  const { policy } = context;
  const { allow } = policy;
  // Resolve the store and the configuration once, not for each file.
  const inTruth = (path: string | null): string | null =>
    path && leadsTo(context.realPath ?? realPath, context.cwd, path);
  const store = inTruth(placeOf(context.store));
  const config = inTruth(context.config ?? null);
  const rules = inTruth(context.rules ?? null);
  const state = inTruth(context.state ?? null);
  const allOutputs = inTruth(context.allOutputs ?? null);
  const known = {
    ...context,
    ...(store === null ? {} : { store }),
    ...(config === null ? {} : { config }),
    ...(rules === null ? {} : { rules }),
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

/** The result for the model when a person has said no. */
export function refusal(reason?: string): string {
  const why = reason === undefined || reason.trim() === "" ? "." : `: ${reason.trim()}`;
  return `The user did not allow this call: it did not run${why} Do not try to achieve the same by other means; continue without it, or ask what to do instead.`.replace(
    /([^.!?]) Do not/u,
    "$1. Do not",
  );
}

/** As typed in a shell, in quotes. */
export function allowFlag(suggestion: string): string {
  return `--allow '${suggestion.replaceAll("'", `'\\''`)}'`;
}

/** Stands in for a missing home folder: no path leads to it, so rules with ~ match nothing. */
const NOWHERE = "/\0";

/** A call, with everything that rules look at. */
class CallFacts {
  readonly name: string;
  readonly input: unknown;
  readonly places: Places;
  readonly paths: OperandPaths;
  /** Where the path really leads; null if the tool has none, or it cannot be resolved. */
  readonly path: string | null = null;
  /** The given path, made absolute. */
  readonly given: string | null = null;
  readonly command: string | null = null;
  /** The simple commands of the line; null if it cannot be parsed. */
  readonly commands: readonly (readonly string[])[] | null = null;
  /** The line is parsed, and no command changes what later ones mean. */
  readonly isClear: boolean = false;
  readonly isWindows: boolean;
  readonly isGuarded: boolean = false;
  readonly isOwnOutput: boolean = false;

  constructor({ name, input }: RequestedCall, options: PolicyContext) {
    const { cwd, home = homeFolder() ?? NOWHERE, store, config, rules, state, outputs, allOutputs } = options;
    this.name = name;
    this.input = input;
    this.places = { cwd, home };
    this.paths = new OperandPaths(this.places);
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
    // By name and by real path: the store's folder may be a link.
    const stores = [place, allOutputs ?? null, config ?? null, rules ?? null, state ?? null].flatMap((own) =>
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

/** Someone who prepares a store could put a hard link to another of this user's files among the outputs. */
function hasOtherName(path: string): boolean {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isFile() === true && found.nlink > 1;
  } catch (error) {
    // It cannot be examined, so it is not known to be an output.
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
    // It cannot be resolved: no rule allows it, and the tool will report what is wrong.
    if (error instanceof Error) return null;
    throw error;
  }
}

function textOf(input: unknown, member: string): string | null {
  const value = typeof input === "object" && input !== null ? (input as Record<string, unknown>)[member] : undefined;
  return typeof value === "string" ? value : null;
}

/** The store's path on disk; null if it is elsewhere, or there is no store. */
function placeOf(store: string | undefined): string | null {
  return store === undefined ? null : (onDisk(store)?.path ?? null);
}

/**
 * Includes the files beside a database, which start with its name. Compares names as a file system that ignores case
 * would.
 */
function isOfStore(path: readonly string[], place: string): boolean {
  const own = foldedPlace(place);
  const last = own.length - 1;
  const isBeside = path.length === own.length && path[last]!.startsWith(`${own[last]}-`);
  return own.every((name, at) => path[at] === name || (at === last && isBeside));
}

const PLACES_MAX = 64;
const foldedPlaces = new Map<string, readonly string[]>();

/** Cached: the same few places are compared with every file of a search. */
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
  // It only tells the user something.
  const isPlan = facts.name === "plan";
  const isFree = isPlan || facts.isOwnOutput || (isReading && facts.isInside && !facts.isGuarded);
  return { verdict: isFree ? "allow" : "ask" };
}

function allowingCall(facts: CallFacts, { allow }: Policy): string | null {
  return allow.find((text) => allows(parseRule(text), facts)) ?? null;
}

/** The rule that allows a line as a whole, or the rules that allow each of its commands. */
function allowingCommand(facts: CallFacts, policy: Policy): string | null {
  const { command, commands, paths } = facts;
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
    restricting.some((rule) => forbidsCommand(rule, words, paths) !== "no");
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

/** The first rule that matches any part of the call. */
function forbidding(rules: readonly string[], facts: CallFacts): string | null {
  return rules.find((text) => forbids(text, facts)) ?? null;
}

function forbids(text: string, facts: CallFacts): boolean {
  const rule = parseRule(text);
  // A denying rule that cannot be parsed denies everything it could have meant.
  if (!rule) {
    const tool = /^\s*([A-Za-z_][\w.:/-]*)\s*\(/u.exec(text)?.[1];
    return tool === undefined || tool === facts.name;
  }
  if (rule.tool === "*") return true;
  if (!namesTool(rule, facts.name, true)) return false;
  if (rule.pattern === null) return true;
  const { command, commands, path, paths, given, places, name } = facts;
  // On Windows words cannot be compared, so any command may match.
  if (name === "shell") return command === null || facts.isWindows || forbidsLine(rule, command, commands, paths);
  // By the given name and by where it leads.
  return [path, given].some((one) => one !== null && namesPath(rule, name, one, places, true));
}

/** For all tools except the shell. */
function allows(rule: Rule | null, facts: CallFacts): boolean {
  if (!rule) return false;
  if (rule.tool === "*") return !facts.isGuarded;
  if (!namesTool(rule, facts.name, false)) return false;
  const { path, places, name, isGuarded } = facts;
  if (!PATH_TOOLS.has(name)) return rule.pattern === null;
  if (path === null) return false;
  if (rule.pattern === null) return facts.isInside && !isGuarded;
  return (rule.isExact || !isGuarded) && namesPath(rule, name, path, places, false);
}

/** Never suggests the bare name of a tool with paths or commands: that would allow all of them. */
function suggestionFor({ name, path, given, command, isWindows }: CallFacts, cwd: string): string {
  const place = path ?? given;
  const text = command === null ? (place === null ? null : escapeHome(shownPath(cwd, place))) : trimmedLine(command);
  if (text === null) return name;
  const isLine = command !== null && isWindows;
  const needsMark = isLine || text === "" || text.includes("*") || text.startsWith("=") || text !== text.trim();
  return `${name}(${needsMark ? "=" : ""}${text})`;
}

/** Keeps a name that starts with ~ from meaning the home folder. */
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
  // Text from a model must not move the reader's cursor.
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
