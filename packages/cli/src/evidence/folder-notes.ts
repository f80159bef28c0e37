import { dirname, join } from "node:path";
import { changesSince, type FileRules, KeptFiles, noteFolder, noteRefFrom } from "@holdfast/acp/internal/evidence";
import type { FolderChanges, Json, OpenCall } from "holdfast";
import { isOwnEntry, type OwnStore } from "../tools/paths/own-store.ts";
import { isInside, realPath } from "../tools/paths/real-path.ts";
import { shapeOf } from "../transcript/shape.ts";

/** The tools that change the working folder, unless a call is safe to repeat. */
const CHANGES_FOLDER: ReadonlySet<string> = new Set(["shell", "edit", "write"]);
/** The folder of a session's notes, beside the outputs of its tools. */
export const NOTES = "before";

/** Where a folder takes longer, the next calls do not wait for it for a while. */
const SLOW_MS = 1_000;
const PAUSE_MS = 60_000;

export interface FolderNotesParts {
  /** The folder for the full outputs of the session's tools. */
  readonly outputs: string;
  readonly folder: () => string;
  readonly rules: () => FileRules;
  /** Those of the session. */
  readonly notes: () => Readonly<Record<string, Json>>;
  /** Whether calls that an earlier process started still have no result. */
  readonly hasOpenCalls: () => boolean;
}

interface NotedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** What the working folder was like when each call began that may not run twice. */
export class FolderNotes {
  readonly #parts: FolderNotesParts;
  readonly #kept: KeptFiles;
  readonly #running = new Set<string>();
  #pausedUntilMs = 0;

  constructor(parts: FolderNotesParts) {
    this.#parts = parts;
    this.#kept = new KeptFiles(join(parts.outputs, NOTES));
  }

  /** Notes it for the start of a call; undefined if nothing is noted. */
  async note({ toolCallId, toolName, input }: NotedCall, isSafe: boolean): Promise<Json | undefined> {
    const startedMs = performance.now();
    if (isSafe || !CHANGES_FOLDER.has(toolName) || startedMs < this.#pausedUntilMs) return undefined;
    this.#running.add(toolCallId);
    const folder = this.#parts.folder();
    const ref = await noteFolder(folder, this.#kept, {
      named: namedIn(folder, input),
      rules: this.#parts.rules(),
      areOthersNeeded: () => this.#running.size > 1 || this.#parts.hasOpenCalls(),
    });
    const endedMs = performance.now();
    if (endedMs - startedMs > SLOW_MS) this.#pausedUntilMs = endedMs + PAUSE_MS;
    return ref ? { ...ref } : undefined;
  }

  /** The note of a call is not needed any more. */
  ended(call: string): void {
    this.#running.delete(call);
  }

  /** What has changed since a call began; null if that was not noted here. */
  changesSince(call: OpenCall): Promise<FolderChanges | null> {
    const { outputs, folder, rules, notes } = this.#parts;
    return changesSinceCall(call, { outputs, folder: folder(), rules: rules(), notes: notes() });
  }
}

/** What has changed since a call began that may have taken effect; null if that was not noted here. */
export async function changesSinceCall(
  { id, state, before }: OpenCall,
  { outputs, folder, rules, notes }: FolderPlace,
): Promise<FolderChanges | null> {
  const ref = state === "outcome-unknown" ? noteRefFrom(before) : null;
  const found = ref && (await changesSince(ref, new KeptFiles(join(outputs, NOTES)), { folder, rules }));
  const restored = restoredIn(notes, id);
  if (!found || restored.length === 0) return found;
  const said = `the user has put back ${restored.length === 1 ? restored[0] : `${restored.length} files`} since`;
  return { ...found, gap: [said, found.gap].filter((one) => one !== null).join("; ") };
}

/** Where a session's folder is, and where what was noted of it is kept. */
export interface FolderPlace {
  readonly outputs: string;
  readonly folder: string;
  readonly rules: FileRules;
  /** Those of the session. */
  readonly notes: Readonly<Record<string, Json>>;
}

/** The note of a session that says which files the user had put back, for which call. */
export const RESTORED = "filesRestored";

function restoredIn(notes: Readonly<Record<string, Json>>, call: string): string[] {
  const { call: of, files } = shapeOf(notes[RESTORED]) ?? {};
  return of === call && Array.isArray(files) ? files.filter((one) => typeof one === "string") : [];
}

/** The store's own files do not count, nor what the tools have printed. */
export function rulesFor(own: OwnStore | null, outputs: string, isSecret: FileRules["isSecret"]): FileRules {
  const all = realPath("/", dirname(outputs));
  return {
    isLeftOut: (path, isFolder) => isInside(all, path) || (own !== null && isOwnEntry(own, path, isFolder)),
    isSecret,
  };
}

function namedIn(folder: string, input: unknown): string[] {
  const path = shapeOf(input)?.["path"];
  if (typeof path !== "string") return [];
  try {
    return [realPath(folder, path)];
  } catch {
    // No such path can be: the tool says so.
    return [];
  }
}
