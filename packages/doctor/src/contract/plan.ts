/** A repair, as data: `--dry-run` shows it, and one executor applies it. */

/** How sure a fact of the repaired session is. */
export type Grade = "intact" | "brought back" | "rebuilt" | "unknown";

/** Bytes of a file that are replaced. */
export interface Edit {
  readonly offset: number;
  readonly length: number;
  readonly bytes: Uint8Array;
  readonly grade: Grade;
  /** In words, for people: "adds the missing closing bracket". */
  readonly why: string;
}

export type Change =
  /** `size`: of the file that was read; if it is another by now, nothing is done. Edits are in order. */
  | { readonly type: "edit"; readonly path: string; readonly size: number; readonly edits: readonly Edit[] }
  /** The content of the file is that of `from`, which the door made (a database that was built again). */
  | {
      readonly type: "replace";
      readonly path: string;
      readonly size: number;
      readonly from: string;
      /** Of a database: the state of the file and its log when they were read. */
      readonly state?: string;
      readonly grade: Grade;
      readonly why: string;
    }
  /** A file that is not there. */
  | {
      readonly type: "create";
      readonly path: string;
      readonly bytes: Uint8Array;
      readonly mode: number;
      readonly grade: Grade;
      readonly why: string;
    }
  | { readonly type: "move"; readonly path: string; readonly to: string; readonly why: string }
  | { readonly type: "mode"; readonly path: string; readonly mode: number; readonly why: string };

export interface Plan {
  readonly changes: readonly Change[];
  /** What stays lost, in words. */
  readonly lost: readonly string[];
}
