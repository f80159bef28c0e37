/**
 * The calls of the Disk interface, distinguished where a fault or a crash can differ; `synced` is the end of an
 * asynchronous `sync`.
 */
export type Operation =
  | "open"
  | "create"
  | "stat"
  | "list"
  | "makeFolder"
  | "rename"
  | "link"
  | "remove"
  | "removeFolder"
  | "syncFolder"
  | "lock"
  | "release"
  | "watch"
  | "networkKind"
  | "read"
  | "write"
  | "writeAt"
  | "fileStat"
  | "truncate"
  | "sync"
  | "synced"
  | "syncNow"
  | "close";

/** One call to the disk. */
export interface Step {
  /** Counted from 0 over all processes of the machine. */
  readonly index: number;
  readonly process: number;
  readonly operation: Operation;
  readonly path: string;
  /** The length of a read or write, the new size of a truncate. */
  readonly bytes?: number;
  readonly position?: number;
  /** The new name of a rename or link. */
  readonly to?: string;
  /** For a write: the file, and its bytes, which belong to the caller and may change after the step. */
  readonly ino?: number;
  readonly content?: Uint8Array;
}

/** Describes a step, for traces and failures: `write sessions/<id>/000001.jsonl 231@1024`. */
export function labelOf(step: Step, root = ""): string {
  const short = (path: string): string =>
    root !== "" && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
  const parts = [step.operation, short(step.path)];
  if (step.to !== undefined) parts.push(short(step.to));
  if (step.bytes !== undefined)
    parts.push(step.position === undefined ? `${step.bytes}` : `${step.bytes}@${step.position}`);
  return parts.join(" ");
}

/** What happens at a step instead of the call. */
export type Action =
  /** The power fails before the call has done anything. */
  | { readonly crash: "power" }
  /** The process is killed; of a write, `bytes` bytes are done. */
  | { readonly crash: "kill"; readonly bytes?: number }
  /** The call fails without effect, except for a failed fsync (S9). */
  | { readonly fail: string }
  /** A write does only this many bytes, and reports that. */
  | { readonly short: number };

/** Asked at every step. */
export type Plan = (step: Step) => Action | null;

/** Calls that change the disk, or what is durable on it: a crash makes a difference only before these. */
export const changing: ReadonlySet<Operation> = new Set<Operation>([
  "create",
  "makeFolder",
  "rename",
  "link",
  "remove",
  "removeFolder",
  "syncFolder",
  "write",
  "writeAt",
  "truncate",
  "sync",
  "synced",
  "syncNow",
]);

export const writing: ReadonlySet<Operation> = new Set<Operation>(["write", "writeAt"]);
export const syncing: ReadonlySet<Operation> = new Set<Operation>(["sync", "syncNow", "syncFolder"]);
/** Calls that need disk space. */
export const allocating: ReadonlySet<Operation> = new Set<Operation>(["write", "writeAt", "create", "makeFolder"]);
/**
 * Calls that can meet an I/O error. The end of a sync is covered by its beginning; a close, a release and a watch touch
 * no disk.
 */
export const faulty: ReadonlySet<Operation> = new Set<Operation>([
  "open",
  "create",
  "stat",
  "list",
  "makeFolder",
  "rename",
  "link",
  "remove",
  "removeFolder",
  "syncFolder",
  "lock",
  "read",
  "write",
  "writeAt",
  "fileStat",
  "truncate",
  "sync",
  "syncNow",
]);

export function crashAt(index: number, crash: "power" | "kill", bytes?: number): Plan {
  const action: Action = crash === "kill" && bytes !== undefined ? { crash, bytes } : { crash };
  return (step) => (step.index === index ? action : null);
}

export interface FaultWindow {
  /** The first step that can meet the fault. */
  readonly from: number;
  /** Only the first step that can meet it, or every one from there on. */
  readonly times: "once" | "for ever";
  readonly operations: ReadonlySet<Operation>;
}

/** The same fault at the steps of a window. */
export function faultIn(window: FaultWindow, action: Action): Plan {
  let met = false;
  return (step) => {
    if (step.index < window.from || !window.operations.has(step.operation)) return null;
    if (met && window.times === "once") return null;
    met = true;
    return action;
  };
}
