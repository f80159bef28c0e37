import { realpathSync } from "node:fs";
import { join } from "node:path";
import { type DiffRow, lineDiff } from "@holdfast/server/internal/edits";
import type { ChangedFile, FolderChanges } from "holdfast";
import { candidates, type Difference, differences } from "./compare.ts";
import { folderNow, look } from "./folder-now.ts";
import { Git, GitFailure, workTreeOf } from "./git.ts";
import type { TreeChange } from "./git-output.ts";
import type { KeptFiles } from "./kept-files.ts";
import { type FileRules, LIMITS, type Limits } from "./limits.ts";
import { type FolderNote, noteFrom } from "./note.ts";
import type { NoteRef } from "./note-folder.ts";

/** At most this many files are listed; the others are counted. */
const LISTED_MAX = 50;
const DIFF_CHARS_MAX = 4_000;
const DIFFS_CHARS_MAX = 16_000;

export interface ChangesOptions {
  /** The folder that is meant. A note may come from anywhere: one of another folder does not count. */
  readonly folder: string;
  readonly rules: FileRules;
  readonly limits?: Limits;
}

/** Everything that is known of how a folder differs from a note. */
export interface Comparison {
  readonly note: FolderNote;
  readonly differences: readonly Difference[];
  /** The bytes of files before and now, where they are known and small. */
  readonly before: ReadonlyMap<string, Buffer>;
  readonly now: ReadonlyMap<string, Buffer>;
  readonly gap: string | null;
}

/** How a folder differs from a note of it; null if there is no such note here. */
export async function changesSince(
  ref: NoteRef,
  kept: KeptFiles,
  options: ChangesOptions,
): Promise<FolderChanges | null> {
  try {
    const compared = await compareFolder(ref, kept, options);
    return compared && changesOf(compared, options.rules);
  } catch (error) {
    if (error instanceof GitFailure) return { files: [], more: 0, gap: `it could not be compared: ${error.message}` };
    if (error instanceof Error && "code" in error) return { files: [], more: 0, gap: "it could not be read" };
    throw error;
  }
}

/** Null if there is no such note here. Throws GitFailure, system errors. */
export async function compareFolder(
  { folder: name }: NoteRef,
  kept: KeptFiles,
  { folder, rules, limits = LIMITS }: ChangesOptions,
): Promise<Comparison | null> {
  const real = realpathSync(folder);
  const note = noteFrom(kept.read(name)?.toString() ?? "");
  if (!note || note.folder !== real) return null;
  const { root, kind, head } = note;
  const workTree = workTreeOf(real);
  if (root !== (kind === "git" ? workTree : real) || (kind === "git") !== (workTree !== null))
    throw new GitFailure("it is in another git work tree now");
  const git = kind === "git" ? new Git(root, real, limits) : null;
  const today = kind === "files" ? null : await folderNow(real, [], limits, rules);
  const isMoved = git && today && head !== null && today.head !== null && head !== today.head;
  const moved = isMoved ? await git.between(head, today.head!) : new Map<string, TreeChange>();
  const others = candidates(note, today?.files.keys() ?? [], moved).slice(0, limits.files);
  const committed = git && head !== null ? await git.filesIn(head, others) : new Map<string, Buffer | null>();
  const found = await look(root, [...note.files.keys(), ...others], limits, rules);
  const before = new Map<string, Buffer>();
  const all = differences(note, { now: found.files, committed: new Set(committed.keys()), moved });
  const changed = all.filter(({ path, before: old }) => {
    const bytes = old === "committed" ? committed.get(path) : old && kept.read(old.hash);
    if (bytes) before.set(path, bytes);
    // What git counts as a difference may be none in the folder: a file that was committed as it was.
    return old !== "committed" || !bytes || !found.bytes.get(path)?.equals(bytes);
  });
  return { note, differences: changed, before, now: found.bytes, gap: gapOf(note, today, limits) };
}

function gapOf(note: FolderNote, today: FolderNote | null, { files }: Limits): string | null {
  if (note.kind === "files") return "only the files that the call names were compared";
  if (note.isCut) return `more than ${files} files differed from the last commit before: only ${files} were compared`;
  if (note.kind === "folder" && today?.kind !== "folder")
    return `it has more than ${files} files now: new ones were not compared`;
  return today?.isCut ? `more than ${files} files differ from the last commit: only ${files} were compared` : null;
}

function changesOf({ note, differences: all, before, now, gap }: Comparison, { isSecret }: FileRules): FolderChanges {
  let left = DIFFS_CHARS_MAX;
  const files = all.slice(0, LISTED_MAX).map((one): ChangedFile => {
    const { path, change } = one;
    const sides = isSecret(join(note.root, path)) ? null : sidesOf(one, before, now);
    if (!sides) return { path, change };
    const rows = lineDiff(...sides);
    const count = (kind: string): number => rows.filter((row) => row.kind === kind).length;
    const diff = shorten(rows, Math.min(DIFF_CHARS_MAX, left));
    for (const { text } of diff) left -= text.length + 1;
    const lines = { added: count("added"), removed: count("removed") };
    return { path, change, lines, ...(diff.length > 0 ? { diff } : {}) };
  });
  return { files, more: all.length - files.length, gap };
}

/** As many lines as fit, and how many do not. */
function shorten(rows: readonly DiffRow[], charsMax: number): DiffRow[] {
  let chars = 0;
  const fits = rows.findIndex(({ text }) => {
    chars += text.length + 1;
    return chars > charsMax;
  });
  if (fits < 0) return [...rows];
  const rest = rows.length - fits;
  return fits === 0
    ? []
    : [...rows.slice(0, fits), { kind: "gap", text: `… ${rest} more ${rest === 1 ? "line" : "lines"}` }];
}

/** Null if one of them is not known, or is no text. */
function sidesOf(
  { path, change, now: state }: Difference,
  before: ReadonlyMap<string, Buffer>,
  now: ReadonlyMap<string, Buffer>,
): [string, string] | null {
  const old = change === "new" ? "" : textOf(before.get(path));
  const fresh = state.kind === "absent" ? "" : textOf(now.get(path));
  return old === null || fresh === null ? null : [old, fresh];
}

export function textOf(bytes: Buffer | undefined): string | null {
  return bytes && !bytes.includes(0) ? bytes.toString() : null;
}
