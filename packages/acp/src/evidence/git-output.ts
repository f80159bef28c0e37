/** A file that differs from the last commit. */
export interface StatusEntry {
  readonly path: string;
  readonly isUntracked: boolean;
}

export interface Status {
  /** The last commit; null before the first. */
  readonly head: string | null;
  readonly entries: readonly StatusEntry[];
}

/** What `git status --porcelain=v2 --branch -z --no-renames` prints. A cut last entry is dropped. */
export function readStatus(output: string): Status {
  const entries: StatusEntry[] = [];
  let head: string | null = null;
  for (const line of fieldsOf(output)) {
    const kind = line[0];
    if (line.startsWith("# branch.oid ")) head = commitIn(line.slice("# branch.oid ".length));
    // Fields before the path: 8 of a changed file, 10 of one with conflicts.
    else if (kind === "1") entries.push({ path: afterFields(line, 8), isUntracked: false });
    else if (kind === "u") entries.push({ path: afterFields(line, 10), isUntracked: false });
    else if (kind === "?") entries.push({ path: line.slice(2), isUntracked: true });
  }
  return { head, entries };
}

export type TreeChange = "new" | "changed" | "removed";

/** What `git diff-tree -r -z --name-status --no-renames` prints. */
export function readTreeChanges(output: string): Map<string, TreeChange> {
  const fields = fieldsOf(output);
  const found = new Map<string, TreeChange>();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const letter = fields[at]!;
    found.set(fields[at + 1]!, letter === "A" ? "new" : letter === "D" ? "removed" : "changed");
  }
  return found;
}

/** What `git ls-tree -z` prints: whether each file is executable. Links and submodules are left out. */
export function readModes(output: string): Map<string, boolean> {
  const found = new Map<string, boolean>();
  for (const line of fieldsOf(output)) {
    const [, mode = "", path = ""] = /^(100644|100755) blob [0-9a-f]+\t(.+)$/su.exec(line) ?? [];
    if (path !== "") found.set(path, mode === "100755");
  }
  return found;
}

/** What `git cat-file --batch` prints for these names: the bytes of each that is a file; the others are left out. */
export function readObjects(output: Buffer, names: readonly string[]): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  let at = 0;
  for (const name of names) {
    const end = output.indexOf(0x0a, at);
    if (end < 0) break;
    const [, kind = "", size = ""] = /^[0-9a-f]+ ([a-z]+) (\d+)$/u.exec(output.toString("latin1", at, end)) ?? [];
    at = end + 1;
    if (kind === "") continue;
    const bytes = output.subarray(at, at + Number(size));
    if (bytes.length < Number(size)) break;
    if (kind === "blob") found.set(name, bytes);
    at += Number(size) + 1;
  }
  return found;
}

/** What `git cat-file --batch-check` prints for these names: the size of each file. */
export function readSizes(output: string, names: readonly string[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const [at, line] of output.split("\n").entries()) {
    const [, size] = /^[0-9a-f]+ blob (\d+)$/u.exec(line) ?? [];
    const name = names[at];
    if (size !== undefined && name !== undefined) found.set(name, Number(size));
  }
  return found;
}

export function commitIn(text: string): string | null {
  return /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/u.test(text) ? text : null;
}

function fieldsOf(output: string): string[] {
  return output.split("\0").slice(0, -1);
}

function afterFields(line: string, count: number): string {
  let at = 0;
  for (let field = 0; field < count; field++) at = line.indexOf(" ", at) + 1;
  return line.slice(at);
}
