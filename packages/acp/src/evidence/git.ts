import { spawn } from "node:child_process";
import { lstatSync } from "node:fs";
import { devNull } from "node:os";
import { delimiter, dirname, isAbsolute, join, relative } from "node:path";
import {
  readModes,
  readObjects,
  readSizes,
  readStatus,
  readTreeChanges,
  type Status,
  type TreeChange,
} from "./git-output.ts";
import type { Limits } from "./limits.ts";

/** Why git did not answer, as a phrase for people. */
export class GitFailure extends Error {}

const OUTPUT_BYTES_MAX = 1024 * 1024;

/** The work tree that a real folder is in; null if it is in none. */
export function workTreeOf(folder: string): string | null {
  for (let at = folder; ; ) {
    const found = lstatSync(join(at, ".git"), { throwIfNoEntry: false });
    if (found && (found.isDirectory() || found.isFile())) return at;
    const above = dirname(at);
    if (above === at) return null;
    at = above;
  }
}

/**
 * Asks git about one work tree. Git obeys the configuration of a repository, whose author may be anyone: nothing that
 * it could make git run is run (monitors, hooks, filters, external diffs, fetches), and it writes nothing. Each
 * question ends within a time.
 */
export class Git {
  readonly #root: string;
  readonly #below: string;
  readonly #limits: Limits;
  #settings: Promise<Record<string, string>> | null = null;

  /** `folder`: the part of the work tree that counts. Both are real paths. */
  constructor(root: string, folder: string, limits: Limits) {
    this.#root = root;
    this.#below = relative(root, folder);
    this.#limits = limits;
  }

  /** The last commit, and what differs from it. `isCut`: there is more. Throws GitFailure. */
  async status(): Promise<Status & { readonly isCut: boolean }> {
    const args = ["status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all"];
    // "dirty" runs no git in submodules, whose configuration is another one.
    const { output, isCut } = await this.#ask([...args, "--ignore-submodules=dirty", ...this.#part()]);
    return { ...readStatus(output.toString()), isCut };
  }

  /** What differs between two commits. Throws GitFailure. */
  async between(from: string, to: string): Promise<ReadonlyMap<string, TreeChange>> {
    const args = ["diff-tree", "-r", "-z", "--name-status", "--no-renames", "--no-ext-diff", "--no-textconv"];
    const { output } = await this.#ask([...args, from, to, ...this.#part()]);
    return readTreeChanges(output.toString());
  }

  /** Which of these files a commit has, with the bytes of the small ones; null for a large one. Throws GitFailure. */
  async filesIn(commit: string, paths: readonly string[]): Promise<ReadonlyMap<string, Buffer | null>> {
    const names = paths.filter((path) => !path.includes("\n")).map((path) => `${commit}:${path}`);
    if (names.length === 0) return new Map();
    const lines = (some: readonly string[]): string => some.map((name) => `${name}\n`).join("");
    const sizes = readSizes((await this.#ask(["cat-file", "--batch-check"], lines(names))).output.toString(), names);
    let left = OUTPUT_BYTES_MAX / 2;
    const small = names.filter((name) => {
      const size = sizes.get(name) ?? Number.POSITIVE_INFINITY;
      if (size > this.#limits.fileBytes || size > left) return false;
      left -= size;
      return true;
    });
    const objects =
      small.length === 0
        ? new Map<string, Buffer>()
        : readObjects((await this.#ask(["cat-file", "--batch"], lines(small))).output, small);
    return new Map([...sizes.keys()].map((name) => [name.slice(commit.length + 1), objects.get(name) ?? null]));
  }

  /** Which of these files a commit has, and whether they are executable. Links are left out. Throws GitFailure. */
  async modesIn(commit: string, paths: readonly string[]): Promise<ReadonlyMap<string, boolean>> {
    if (paths.length === 0) return new Map();
    const { output } = await this.#ask(["ls-tree", "-z", "--full-tree", commit, "--", ...paths]);
    return readModes(output.toString());
  }

  /** Whether what git stores of a file is what it puts into the folder, byte by byte. Throws GitFailure. */
  async storesAsIs(paths: readonly string[]): Promise<ReadonlySet<string>> {
    const ending = await this.#ask(["config", "--null", "--get", "core.autocrlf"], null, [0, 1]);
    if (!["", "false\0"].includes(ending.output.toString())) return new Set();
    const names = ["filter", "text", "eol", "crlf", "ident", "working-tree-encoding"];
    const input = paths.map((path) => `${path}\0`).join("");
    const { output } = await this.#ask(["check-attr", "-z", "--stdin", ...names], input);
    const changed = new Set<string>();
    const fields = output.toString().split("\0");
    for (let at = 0; at + 2 < fields.length; at += 3)
      if (!["unspecified", "unset"].includes(fields[at + 2]!)) changed.add(fields[at]!);
    return new Set(paths.filter((path) => !changed.has(path)));
  }

  #part(): string[] {
    return this.#below === "" ? [] : ["--", this.#below];
  }

  async #ask(args: readonly string[], input: string | null = null, codes = [0]): Promise<Answer> {
    this.#settings ??= this.#filtersOff();
    return this.#run(args, { ...SETTINGS, ...(await this.#settings) }, input, codes);
  }

  /** Empty commands in place of the repository's filters, which git would run to compare files. */
  async #filtersOff(): Promise<Record<string, string>> {
    const args = ["config", "--null", "--name-only", "--get-regexp", "^filter\\."];
    const { output, isCut } = await this.#run(args, SETTINGS, null, [0, 1]);
    if (isCut) throw new GitFailure("the repository has too many filters");
    const filters = new Set(
      output
        .toString()
        .split("\0")
        .map((key) => key.slice(0, key.lastIndexOf("."))),
    );
    filters.delete("");
    return Object.fromEntries(
      [...filters].flatMap((filter) => [
        ...["clean", "smudge", "process"].map((kind) => [`${filter}.${kind}`, ""]),
        [`${filter}.required`, "false"],
      ]),
    );
  }

  #run(
    args: readonly string[],
    settings: Readonly<Record<string, string>>,
    input: string | null,
    codes: readonly number[],
  ): Promise<Answer> {
    const { gitMs } = this.#limits;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const child = spawn("git", ["-C", this.#root, "--no-pager", "--literal-pathspecs", ...args], {
      env: environmentFor(this.#root, settings),
      stdio: [input === null ? "ignore" : "pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isCut = false;
    let said = "";
    let why: string | null = null;
    const timer = setTimeout(() => {
      why = `git took longer than ${gitMs / 1000} s`;
      child.kill("SIGKILL");
    }, gitMs);
    child.stdout!.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (isCut) return;
      chunks.push(chunk);
      if (bytes <= OUTPUT_BYTES_MAX) return;
      isCut = true;
      child.kill("SIGKILL");
    });
    child.stderr!.on("data", (chunk: Buffer) => {
      if (said.length < 200) said += chunk.toString();
    });
    // It ended before it had read everything: its exit says why.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(new GitFailure("git cannot be run", { cause: error }));
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      const [line = ""] = said.split("\n");
      if (why === null && !isCut && !codes.includes(code ?? -1)) why = `git failed: ${line.slice(0, 200)}`;
      if (why === null) resolve({ output: Buffer.concat(chunks), isCut });
      else reject(new GitFailure(why));
    });
    return promise;
  }
}

interface Answer {
  readonly output: Buffer;
  readonly isCut: boolean;
}

const SETTINGS: Readonly<Record<string, string>> = {
  "core.fsmonitor": "false",
  "core.hooksPath": devNull,
  // A folder that only looks like a repository has a configuration of its own.
  "safe.bareRepository": "explicit",
};

/** Without the variables that would make git look elsewhere, and with settings that win over all files. */
function environmentFor(root: string, settings: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const { PATH = "" } = process.env;
  const isOwn = (name: string): boolean => !name.startsWith("GIT_") && name !== "PATH";
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => isOwn(name.toUpperCase())));
  const all = Object.entries(settings).flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return {
    ...own,
    // A relative folder would be one of the repository's.
    PATH: PATH.split(delimiter)
      .filter((folder) => isAbsolute(folder))
      .join(delimiter),
    ...Object.fromEntries(all),
    GIT_CONFIG_COUNT: String(Object.keys(settings).length),
    // The configuration could name another folder.
    GIT_WORK_TREE: root,
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_LAZY_FETCH: "1",
    // No protocol is allowed: older versions fetch missing objects all the same.
    GIT_ALLOW_PROTOCOL: "none",
    LC_ALL: "C",
  };
}
