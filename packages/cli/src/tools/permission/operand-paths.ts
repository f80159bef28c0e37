import { posix } from "node:path";
import { foldText, otherRoots } from "../paths/file-names.ts";
import { realPath } from "../paths/real-path.ts";
import type { Match, Places } from "./rule.ts";
import { EXPANDED } from "./shell-words.ts";
import { canBeSame, WILD } from "./wildcard.ts";

/** A word with more of them is not compared. */
const PARTS_MAX = 16;

const OTHER_ROOTS = otherRoots(WILD);

/** Compares the paths that words of a rule and of a command name, in any spelling. For one decision: it caches. */
export class OperandPaths {
  readonly #places: Places;
  readonly #folder: string;
  readonly #known = new Map<string, readonly string[]>();
  readonly #matches = new Map<string, Match>();

  constructor(places: Places) {
    this.#places = places;
    this.#folder = `${foldText(places.cwd)}/`;
  }

  get cwd(): string {
    return this.#places.cwd;
  }

  /** Whether a word is, or contains, the path that a rule wants; `maybe` also for a folder that contains it. */
  match(wanted: string, word: string): Match {
    const key = JSON.stringify([wanted, word]);
    const known = this.#matches.get(key) ?? this.#compare(wanted, word);
    this.#matches.set(key, known);
    return known;
  }

  #compare(wanted: string, word: string): Match {
    const parts = partsOf(word);
    if (parts.length > PARTS_MAX) return "maybe";
    const patterns = this.absolute(wanted);
    const above = patterns.flatMap(foldersAbove);
    let best: Match = "no";
    for (const part of parts) {
      const forms = this.absolute(part);
      for (const pattern of patterns) {
        if (!forms.some((form) => canBeSame(pattern, form))) continue;
        if (!this.#isOfFolder(part, pattern)) return "yes";
        best = "maybe";
      }
      const isAbove = above.some((one) => forms.some((form) => depth(form) <= depth(one) && canBeSame(one, form)));
      const isElsewhere = OTHER_ROOTS.some((one) => forms.some((form) => canBeSame(one, form)));
      if (isAbove || isElsewhere || expandsToParent(part)) best = "maybe";
    }
    return best;
  }

  /** The absolute path that a word names, folded: by its text, and with links resolved. */
  absolute(word: string): readonly string[] {
    const known = this.#known.get(word);
    if (known) return known;
    const { cwd, home } = this.#places;
    const [, user, rest = ""] = /^\0~([^/]*)(.*)$/su.exec(word) ?? [];
    // The folder of another user may be anywhere.
    const isUnknown = user !== undefined && user !== "" && user !== "+";
    const path = user === undefined ? word : isUnknown ? WILD + rest : (user === "" ? home : cwd) + rest;
    const found = isUnknown ? [posix.normalize(path)] : [posix.resolve(cwd, path), this.#real(path)];
    const forms = [...new Set(found.map(foldText))];
    this.#known.set(word, forms);
    return forms;
  }

  /** Up to the first wildcard. */
  #real(path: string): string {
    const names = path.split("/");
    const wild = names.findIndex((name) => name.includes(EXPANDED));
    const fixed = names.slice(0, wild < 0 ? names.length : wild).join("/");
    const start = path.startsWith("/") && fixed === "" ? "/" : fixed;
    try {
      const real = realPath(this.#places.cwd, start);
      return wild < 0 ? real : posix.join(real, ...names.slice(wild));
    } catch (error) {
      // It cannot be resolved, so the command cannot open it either.
      if (error instanceof Error) return posix.resolve(this.#places.cwd, path);
      throw error;
    }
  }

  /**
   * Who denies everything in `/` or `~` hardly means all of the working folder, if a word does not even mention that
   * it is there: that is asked about.
   */
  #isOfFolder(part: string, pattern: string): boolean {
    if (/^(?:\/|\0~)|(?:^|\/)\.\.(?:\/|$)/u.test(part) || pattern.startsWith(this.#folder)) return false;
    return this.absolute(part).every((form) => form.startsWith(this.#folder));
  }
}

/** A word, and what may be a path in it: `--file=a`, `-fa/b`, `-xfa/b`, `if=a`, `@a`, `host:a`, `file://host/a`. */
function partsOf(word: string): string[] {
  const [, letters = ""] = /^-([A-Za-z]{1,4})/u.exec(word) ?? [];
  const values = [...letters].map((_, at) => word.slice(at + 2)).filter((value) => value.length > 2);
  const pieces = /[=:,;@<]/u.test(word) ? word.split(/[=:,;@<]/u, PARTS_MAX + 1) : [];
  const address = /^file:/iu.test(word) ? URL.parse(word) : null;
  return [word, ...values, ...pieces, ...(address ? [decoded(address.pathname)] : [])].filter((part) => part !== "");
}

/** What curl expands itself, such as `.ss[h]`, can be anything. */
function decoded(path: string): string {
  return path
    .replaceAll(/%[0-9a-f]{2}/giu, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    .replaceAll(/[[{].*$/gsu, WILD);
}

function foldersAbove(path: string): string[] {
  const names = path.split("/");
  return names.slice(1).map((_, at) => names.slice(0, at + 1).join("/") || "/");
}

function depth(path: string): number {
  return path.split("/").length;
}

/** Whether a part of a path may be expanded to `..` (`.?`, `.*`): then it leads anywhere. */
function expandsToParent(path: string): boolean {
  return path.split("/").some((name) => /^\.{1,2}\0[*?[]/u.test(name));
}
