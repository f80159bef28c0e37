import { Buffer } from "node:buffer";
import type { EditorFiles } from "@holdfast/server/internal/contract";
import type { ModelMessage } from "ai";
import type { Session } from "holdfast";
import {
  digestOf,
  type FileSnapshot,
  inspectTarget,
  type Target,
  type TargetSnapshot,
} from "../tools/files/call-target.ts";
import type { Watch } from "../tools/files/context.ts";
import type { OwnStore } from "../tools/paths/own-store.ts";
import type { Decision } from "../tools/permission/decide.ts";

interface Call {
  readonly name: string;
  readonly input: unknown;
}

/**
 * Checks that a call still does what a person approved. Rules judge where a path leads, and a person judges the file
 * that is there: both can change while a question is open. So each call is checked again when it starts, and before a
 * file is replaced.
 */
export class ApprovalGuard {
  readonly #session: Session<ModelMessage>;
  readonly #cwd: () => string;
  readonly #own: OwnStore | null;
  readonly #editor: () => EditorFiles | null;
  readonly #decide: (name: string, input: unknown) => Decision;
  /** Successive states of each file that this agent changed: several edits of one file may be approved together. */
  readonly #made = new Map<string, Target[]>();

  constructor(
    session: Session<ModelMessage>,
    {
      cwd,
      own,
      editor,
    }: { readonly cwd: () => string; readonly own: OwnStore | null; readonly editor: () => EditorFiles | null },
    decide: (name: string, input: unknown) => Decision,
  ) {
    this.#session = session;
    this.#cwd = cwd;
    this.#own = own;
    this.#editor = editor;
    this.#decide = decide;
  }

  look(call: Call): Promise<FileSnapshot> {
    return inspectTarget({ cwd: this.#cwd(), own: this.#own, editor: this.#editor() }, call);
  }

  /** In the journal: if the agent is killed before the call runs, the next process must not run anything else. */
  async record(asks: ReadonlyMap<string, TargetSnapshot>): Promise<void> {
    if (asks.size === 0) return;
    const kept = [...asks].map(([call, { digest, path, target }]) => [call, { digest, path, target: { ...target } }]);
    await this.#session.note("approved", Object.fromEntries(kept));
  }

  watch(id: string, call: Call): Watch {
    let before: FileSnapshot | null = null;
    return {
      check: async () => {
        before = await this.#check(id, call);
      },
      changed: async () => {
        if (before?.path != null) this.#add(before.path, before.target, (await this.look(call)).target);
      },
    };
  }

  async #check(id: string, call: Call): Promise<FileSnapshot> {
    const seen = await this.look(call);
    const { verdict, denial } = this.#decide(call.name, call.input);
    if (verdict === "allow") return seen;
    if (verdict === "deny") throw new Error(denial);
    const approved = this.#recorded(id);
    const why = approved === null ? "What it would do now was not approved." : this.#difference(call, approved, seen);
    if (why !== null) throw new Error(changedWords(why));
    return seen;
  }

  /** How the call differs from the approved one, in words; null if it does not. */
  #difference(call: Call, approved: TargetSnapshot, now: FileSnapshot): string | null {
    if (digestOf(call, approved.path, approved.target) !== approved.digest)
      return "Its input differs from the approved one.";
    if (approved.path !== now.path)
      return `Its path now leads to ${now.path ?? "nowhere"}; it led to ${approved.path ?? "nowhere"} when it was approved.`;
    if (this.#states(now).some((target) => isSame(target, approved.target)) || isWritten(call, now)) return null;
    return `${now.path} was changed after the call was approved.`;
  }

  /** The current target, plus its states before this agent's changes, if nobody else has changed it since. */
  #states({ path, target }: TargetSnapshot): readonly Target[] {
    const made = (path !== null && this.#made.get(path)) || [];
    return isSame(made.at(-1), target) ? made : [target];
  }

  #add(path: string, before: Target, after: Target): void {
    const made = this.#made.get(path) ?? [];
    this.#made.set(path, isSame(made.at(-1), before) ? [...made, after] : [before, after]);
  }

  #recorded(id: string): TargetSnapshot | null {
    const { approved } = this.#session.attributes.notes;
    const found = typeof approved === "object" && approved !== null ? Object.entries(approved) : [];
    return (found.find(([call]) => call === id)?.[1] as TargetSnapshot | undefined) ?? null;
  }
}

function isSame(a: Target | undefined, b: Target): boolean {
  return (
    a !== undefined && digestOf({ name: "", input: null }, null, a) === digestOf({ name: "", input: null }, null, b)
  );
}

/** The file already holds what the call would write: a killed process wrote it, and writing it again is harmless. */
function isWritten({ name, input }: Call, { bytes }: FileSnapshot): boolean {
  const { content } = (input ?? {}) as { readonly content?: unknown };
  return name === "write" && typeof content === "string" && bytes?.equals(Buffer.from(content, "utf8")) === true;
}

function changedWords(why: string): string {
  return `Not run: ${why} Nothing was done. Check the current state; if the call is still right, repeat it, and the user is asked again.`;
}
