import { type FileState, isSameState } from "./file-state.ts";
import type { TreeChange } from "./git-output.ts";
import type { FolderNote } from "./note.ts";

/** A file that is not as it was noted. */
export interface Difference {
  readonly path: string;
  readonly change: "new" | "changed" | "removed";
  /** Where what it held before is: among the kept files, in the last commit that was noted, or nowhere. */
  readonly before: { readonly hash: string } | "committed" | null;
  readonly now: FileState;
}

/** What else is known now. */
export interface CurrentFolder {
  /** Each file that was noted or may have changed. */
  readonly now: ReadonlyMap<string, FileState>;
  /** Of those, the ones that the noted commit has. */
  readonly committed: ReadonlySet<string>;
  /** Those in which the noted commit and today's last commit differ. */
  readonly moved: ReadonlyMap<string, TreeChange>;
}

/** Which files were not noted but may have changed: those that differ from the last commit only now, and new ones. */
export function candidates(note: FolderNote, now: Iterable<string>, moved: ReadonlyMap<string, TreeChange>): string[] {
  // Of the files that did not fit into the note, nobody knows what they were like.
  const unnoted = note.kind === "files" || note.isCut ? [] : [...now];
  return [...new Set([...unnoted, ...moved.keys()])].filter((path) => !note.files.has(path));
}

/** The files that are not as they were, in the order of their paths. */
export function differences(note: FolderNote, { now, committed, moved }: CurrentFolder): Difference[] {
  const found: Difference[] = [];
  for (const [path, state] of now) {
    const noted = note.files.get(path);
    if (noted === undefined) {
      const isOld = committed.has(path) || moved.get(path) === "changed" || moved.get(path) === "removed";
      const change = changeOf(isOld, state);
      if (change) found.push({ path, change, before: isOld ? "committed" : null, now: state });
      continue;
    }
    if (isSameState(noted, state)) continue;
    const change = changeOf(noted.kind !== "absent", state);
    const before = noted.kind === "file" && noted.hash !== null ? { hash: noted.hash } : null;
    if (change) found.push({ path, change, before, now: state });
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function changeOf(wasThere: boolean, { kind }: FileState): Difference["change"] | null {
  if (kind === "absent") return wasThere ? "removed" : null;
  return wasThere ? "changed" : "new";
}
