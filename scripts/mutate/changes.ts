import { execFileSync } from "node:child_process";

/** The lines of each file that differ from a commit, by the numbers that they have now. */
export type Changes = ReadonlyMap<string, ReadonlySet<number>>;

/**
 * What the working tree changed since it parted from `base`; files that git does not know yet are changed as a whole.
 */
export function changesSince(root: string, base: string): Changes {
  const git = (...parameters: string[]): string => {
    try {
      return execFileSync("git", parameters, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28, stdio: "pipe" });
    } catch (error) {
      throw new Error(`Git cannot compare with "${base}". Name a branch or commit: --changed <base>.`, {
        cause: error,
      });
    }
  };
  const parting = git("merge-base", base, "HEAD").trim();
  const changes = new Map(readDiff(git("diff", "--no-color", "--no-ext-diff", "--relative", "-U0", parting)));
  for (const file of git("ls-files", "--others", "--exclude-standard").split("\n"))
    if (file !== "") changes.set(file, EVERY_LINE);
  return changes;
}

const EVERY_LINE: ReadonlySet<number> = Object.assign(new Set<number>(), { has: () => true });

export function readDiff(diff: string): Map<string, ReadonlySet<number>> {
  const changes = new Map<string, Set<number>>();
  let lines = new Set<number>();
  for (const line of diff.split("\n")) {
    const file = /^\+\+\+ b\/(.*)$/.exec(line)?.[1];
    if (file !== undefined) {
      lines = new Set();
      changes.set(file, lines);
    }
    const hunk = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (hunk) for (let i = 0; i < Number(hunk[2] ?? 1); i++) lines.add(Number(hunk[1]) + i);
  }
  return changes;
}

/** Changed lines come first, then the other lines of changed files, then the rest. */
export function rankBy(changes: Changes): (place: { readonly file: string; readonly line: number }) => number {
  return ({ file, line }) => {
    const lines = changes.get(file);
    return lines === undefined ? 2 : lines.has(line) ? 0 : 1;
  };
}
