import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { changesSince, type FileRules, KeptFiles, type NoteRef, noteFolder } from "../../../src/evidence/index.ts";
import { LIMITS } from "../../../src/evidence/limits.ts";

/** A folder to work in, and a place for notes beside it. Git answers without a limit that a busy machine could miss. */
export class Place implements Disposable {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-evidence-")));
  readonly folder = join(this.root, "work");
  readonly notes = join(this.root, "notes");
  readonly kept = new KeptFiles(this.notes);
  rules: FileRules = { isLeftOut: () => false, isSecret: () => false };
  limits = { ...LIMITS, gitMs: 60_000 };

  constructor() {
    mkdirSync(this.folder);
  }

  write(files: Readonly<Record<string, string>>): void {
    const folders = new Set(Object.keys(files).map((path) => dirname(join(this.folder, path))));
    for (const folder of folders) mkdirSync(folder, { recursive: true });
    for (const [path, text] of Object.entries(files)) writeFileSync(join(this.folder, path), text);
  }

  /** As the user: with whatever the repository configures. */
  git(...args: readonly string[]): string {
    const env = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
    const who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"];
    return execFileSync("git", ["-C", this.folder, ...who, ...args], { env, encoding: "utf8", stdio: "pipe" });
  }

  commit(files: Readonly<Record<string, string>>): void {
    this.git("init", "-q");
    this.write(files);
    this.git("add", "-A");
    this.git("commit", "-qm", "first");
  }

  note(named: readonly string[] = [], folder = this.folder): Promise<NoteRef | null> {
    return noteFolder(folder, this.kept, { named, rules: this.rules, limits: this.limits });
  }

  changes(ref: NoteRef | null, folder = this.folder): ReturnType<typeof changesSince> {
    if (ref === null) throw new Error("nothing was noted");
    return changesSince(ref, this.kept, { folder, rules: this.rules, limits: this.limits });
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** Paths with what happened to them. */
export function summary(changes: Awaited<ReturnType<typeof changesSince>>): string[] {
  if (changes === null) throw new Error("no such note");
  return changes.files.map(
    ({ path, change, lines }) => `${path} ${change}${lines ? ` +${lines.added} -${lines.removed}` : ""}`,
  );
}
