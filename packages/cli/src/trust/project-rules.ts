import { mkdirSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { CommandError, EXIT } from "../exit.ts";
import { busyFile, locked, PATIENCE_MS, realFile, replaceFile } from "../shared-file.ts";
import { readOwnFile } from "./trust.ts";

export const RULE_KINDS = ["allow", "ask", "deny"] as const;
export type RuleKind = (typeof RULE_KINDS)[number];
export type RuleSet = Readonly<Record<RuleKind, readonly string[]>>;

const NONE: RuleSet = { allow: [], ask: [], deny: [] };

/**
 * The user's rules for single projects, in the user's configuration. Never in a repository or a journal: anyone who
 * wrote those could grant themselves anything. A project is a folder, by its real path: its rules apply to sessions
 * that work in exactly that folder, because a rule's paths and commands mean something else in any other.
 */
export class ProjectRules {
  readonly path: string | null;
  readonly #patienceMs: number;
  #known: { readonly stamp: string; readonly projects: ReadonlyMap<string, RuleSet> } = {
    stamp: "",
    projects: new Map(),
  };

  /** `path`: the file; null if this user has no configuration. `patienceMs`: how long to wait for another process. */
  constructor(path: string | null, patienceMs = PATIENCE_MS) {
    this.path = path;
    this.#patienceMs = patienceMs;
  }

  /** Rules by folder. Throws CommandError CONFIG_INVALID. */
  load(): ReadonlyMap<string, RuleSet> {
    if (this.path === null) return new Map();
    const stamp = stampOf(this.path);
    if (stamp === this.#known.stamp) return this.#known.projects;
    const projects = stamp === "" ? new Map<string, RuleSet>() : projectsIn(this.path);
    this.#known = { stamp, projects };
    return projects;
  }

  /**
   * The rules for a working folder now: a rule that the user removes stops to apply at once. Never throws: while the
   * file cannot be read, the rules last read still deny and ask, but allow nothing.
   */
  of(folder: string): RuleSet {
    const project = projectOf(folder);
    if (typeof project !== "string") return NONE;
    try {
      return this.load().get(project) ?? NONE;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { ...(this.#known.projects.get(project) ?? NONE), allow: [] };
    }
  }

  /** Returns the rules that are new. Throws CommandError CONFIG_INVALID and system errors. */
  add(folder: string, kind: RuleKind, rules: readonly string[]): string[] {
    const fresh = (set: RuleSet): string[] => [...new Set(rules)].filter((rule) => !set[kind].includes(rule));
    let added: string[] = [];
    this.#change(folder, (set) => {
      added = fresh(set);
      return { ...set, [kind]: [...set[kind], ...added] };
    });
    return added;
  }

  /** Removes these rules, of any kind. Returns those that were there. */
  remove(folder: string, rules: readonly string[]): string[] {
    const removed = new Set<string>();
    this.#change(folder, (set) => {
      const rest = (kind: RuleKind): string[] =>
        set[kind].filter((rule) => {
          if (rules.includes(rule)) removed.add(rule);
          return !rules.includes(rule);
        });
      return { allow: rest("allow"), ask: rest("ask"), deny: rest("deny") };
    });
    return [...removed];
  }

  #change(folder: string, change: (set: RuleSet) => RuleSet): void {
    if (this.path === null) throw invalid("This user has no configuration folder, so no rules can be saved.");
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    const path = realFile(this.path);
    // Two processes may change the file at once: a rule that one of them removed must not come back.
    locked(path, this.#patienceMs, () => {
      const projects = new Map(this.load());
      const { stamp } = this.#known;
      const next = change(projects.get(folder) ?? NONE);
      const isEmpty = RULE_KINDS.every((kind) => next[kind].length === 0);
      if (isEmpty) projects.delete(folder);
      else projects.set(folder, next);
      replaceFile(path, textOf(projects), () => {
        // An editor takes no lock.
        if (stampOf(path) !== stamp) throw busyFile(`${path} was changed by another program just now.`);
      });
    });
    this.load();
  }
}

/** The folder that rules for a project are saved for, or why there can be none. */
export function projectOf(folder: string): string | { readonly why: string } {
  try {
    const real = realpathSync(folder);
    const found = statSync(real);
    if (!found.isDirectory()) return { why: `${real} is not a folder` };
    // Anyone can make a folder in a shared place where this user once had one.
    const user = process.getuid?.();
    if (user !== undefined && found.uid !== user) return { why: `${real} belongs to another user (${found.uid})` };
    return real;
  } catch (error) {
    if (error instanceof Error && "code" in error) return { why: error.message };
    throw error;
  }
}

/** Changes with every change of the file; empty if there is none. */
function stampOf(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? "" : [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(":");
}

function projectsIn(path: string): Map<string, RuleSet> {
  // The file may be a link: people keep their configuration elsewhere.
  const { text, why } = readOwnFile(realFile(path));
  if (why !== undefined) throw invalid(`The rules of your projects, ${path}, cannot be used: the file ${why}.`);
  if (text === undefined) return new Map();
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw invalid(`The rules of your projects, ${path}, are not valid JSON: ${(error as Error).message}.`);
  }
  const { version, projects } = (parsed ?? {}) as { readonly version?: unknown; readonly projects?: unknown };
  if (version !== 1) throw invalid(`${path} must contain "version": 1; this holdfast knows no other.`);
  if (typeof projects !== "object" || projects === null || Array.isArray(projects))
    throw invalid(`${path}: "projects" must be an object of folders.`);
  return new Map(Object.entries(projects).map(([folder, set]) => [folder, setIn(set, `${path}: ${folder}`)]));
}

function setIn(given: unknown, where: string): RuleSet {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw invalid(`${where}: must be an object with "allow", "ask" and "deny".`);
  const unknown = Object.keys(given).find((key) => !RULE_KINDS.some((kind) => kind === key));
  // A misspelt "deny" must not go unnoticed.
  if (unknown !== undefined) throw invalid(`${where}: unknown kind of rule "${unknown}".`);
  const list = (kind: RuleKind): readonly string[] => {
    const found = (given as Partial<Record<RuleKind, unknown>>)[kind] ?? [];
    if (Array.isArray(found) && found.every((rule) => typeof rule === "string")) return found;
    throw invalid(`${where}: "${kind}" must be a list of rules.`);
  };
  return { allow: list("allow"), ask: list("ask"), deny: list("deny") };
}

function textOf(projects: ReadonlyMap<string, RuleSet>): string {
  const rows = [...projects].map(([folder, set]) => {
    const kinds = RULE_KINDS.filter((kind) => set[kind].length > 0);
    return [folder, Object.fromEntries(kinds.map((kind) => [kind, set[kind]]))];
  });
  return `${JSON.stringify({ version: 1, projects: Object.fromEntries(rows) }, null, 2)}\n`;
}

function invalid(message: string): CommandError {
  return new CommandError(EXIT.usage, "CONFIG_INVALID", `${message} Nothing was touched.`);
}
