import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import type { FolderChanges, Json } from "holdfast";
import { type NoteRef, noteRefFrom } from "../evidence/note-folder.ts";
import { objectOf, type Params, stringOf } from "./message.ts";

/** How a folder is noted, and compared with a note: the program that runs the proxy knows where the notes are kept. */
export interface CallEvidence {
  note(folder: string, named: readonly string[], areOthersNeeded: () => boolean): Promise<NoteRef | null>;
  changes(folder: string, ref: NoteRef): Promise<FolderChanges | null>;
}

/** The note of a session with what was noted for its open calls. */
export const BEFORE = "acp.before";
/** Kinds of calls that change nothing in the folder. */
const HARMLESS: ReadonlySet<string> = new Set(["read", "search", "think", "fetch", "switch_mode"]);
const CALLS_MAX = 20;
const NAMED_MAX = 20;

/**
 * What the folder was like when the session's calls were first seen. An agent does not wait for that, unless it asks
 * for permission.
 */
export class NotedCalls {
  readonly #evidence: CallEvidence;
  readonly #record: (notes: Json) => Promise<void>;
  /** By call; null for one that was not noted. The newest are last. */
  readonly #notes = new Map<string, NoteRef | null>();
  readonly #noting = new Map<string, Promise<void>>();

  /** `recorded`: what an earlier process recorded. */
  constructor(evidence: CallEvidence, recorded: Json | undefined, record: (notes: Json) => Promise<void>) {
    this.#evidence = evidence;
    this.#record = record;
    for (const [call, ref] of Object.entries(objectOf(recorded) ?? {})) this.#notes.set(call, noteRefFrom(ref));
  }

  /** A call begins, or has changed. */
  seen(update: Params, folder: string): void {
    const call = stringOf(update["toolCallId"]);
    const kind = stringOf(update["kind"]);
    if (call === null || this.#notes.has(call) || (kind !== null && HARMLESS.has(kind))) return;
    this.#notes.set(call, null);
    const noting = this.#note(call, folder, pathsIn(update));
    this.#noting.set(call, noting);
  }

  async #note(call: string, folder: string, named: readonly string[]): Promise<void> {
    try {
      const ref = await this.#evidence.note(folder, named, () => this.#notes.size > 1);
      if (!this.#notes.has(call)) return;
      this.#notes.set(call, ref);
      const noted = [...this.#notes].flatMap(([id, one]) => (one ? [[id, { ...one }]] : [])).slice(-CALLS_MAX);
      if (ref) await this.#record(Object.fromEntries(noted));
    } catch {
      // What cannot be looked at is not noted: recording the session does not depend on it.
    } finally {
      this.#noting.delete(call);
    }
  }

  /** Resolves when the folder has been looked at for this call. */
  async settled(call: string): Promise<void> {
    await this.#noting.get(call);
  }

  ended(call: string): void {
    this.#notes.delete(call);
  }

  clear(): void {
    this.#notes.clear();
  }

  /** What has changed since each of these calls was first seen. Calls that were not noted are left out. */
  async changes(calls: Iterable<string>, folder: string): Promise<Map<string, FolderChanges>> {
    const found = new Map<string, FolderChanges>();
    for (const call of calls) {
      await this.settled(call);
      const ref = this.#notes.get(call);
      // The same: the calls are closed without it.
      const changes = ref ? await this.#evidence.changes(folder, ref).catch(() => null) : null;
      if (changes) found.set(call, changes);
    }
    return found;
  }
}

/** Files that a call names: where it works, or in its input. */
function pathsIn({ locations, rawInput }: Params): string[] {
  const places = Array.isArray(locations) ? locations.map((one) => objectOf(one)?.["path"]) : [];
  const input = Object.values(objectOf(rawInput) ?? {});
  return [...places, ...input]
    .flatMap((one) => (typeof one === "string" && one.length < 4096 ? (pathFrom(one) ?? []) : []))
    .slice(0, NAMED_MAX);
}

function pathFrom(text: string): string | null {
  if (isAbsolute(text)) return text.includes("\n") || text.includes("\0") ? null : text;
  try {
    return text.startsWith("file://") ? fileURLToPath(text) : null;
  } catch {
    // No path of this machine.
    return null;
  }
}
