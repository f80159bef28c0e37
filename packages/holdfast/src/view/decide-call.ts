import type { Outcome } from "../dialects/dialect.ts";
import type { OpenCall } from "./interruption.ts";

/** What a program does with the calls that an interrupted turn left open. Plain data. */
export interface CallPolicy {
  /** The program can run open calls. Default: the model is told how far each got. */
  readonly runs?: boolean;
  /** The program asks a person about calls that wait. Default: the model is told that they did not run. */
  readonly asks?: boolean;
  /**
   * Today's rule for each tool that the program has. A call runs again only if this and the rule recorded with its
   * start both say that it is safe, and waits if its tool is missing. Default: the recorded rule alone decides.
   */
  readonly tools?: Readonly<Record<string, ToolRule>>;
  /** What the program knows of single calls beyond the journal, by id. */
  readonly facts?: Readonly<Record<string, CallFacts>>;
}

export interface ToolRule {
  /** "safe": running the tool twice does no harm. */
  readonly replay?: "never" | "safe";
  /** The program can ask what happened to a call. */
  readonly probe?: boolean;
}

/** What is known of a call beyond the journal. */
export interface CallFacts {
  /** Known since: its process outlived the agent and has ended, or a service was asked. */
  readonly outcome?: Outcome;
  /** It certainly never began, although its start is recorded. */
  readonly neverBegan?: boolean;
  /** Permission for it was requested and not given: it has not run. */
  readonly unapproved?: boolean;
  /** It must not run now: a rule forbids it, or somebody has changed since what it would change. */
  readonly mustNotRun?: boolean;
  /** It waits for a decision or a result that comes from outside this program. */
  readonly waits?: boolean;
  /** What the model is told about it, if more is known than the journal has: what its command printed. */
  readonly report?: string;
  /** What has changed since it began in the folder that it works in, by whomever. */
  readonly changes?: FolderChanges;
  /** Its process outlived the agent. `printed`: the end of what it has printed so far, for people. */
  readonly process?: {
    readonly pid: number;
    readonly running: boolean;
    readonly exitCode?: number;
    readonly printed?: string;
  };
}

/** How a folder differs from what was noted of it before. Who changed it cannot be told. */
export interface FolderChanges {
  readonly files: readonly ChangedFile[];
  /** How many changed files are not listed. */
  readonly more: number;
  /** What could not be compared, as a sentence for people; null if everything was. */
  readonly gap: string | null;
}

export interface ChangedFile {
  /** Relative to the folder. */
  readonly path: string;
  readonly change: "new" | "changed" | "removed";
  /** How many lines differ, if that is known. */
  readonly lines?: { readonly added: number; readonly removed: number };
  /** The lines that differ, among some that do not. Shortened. */
  readonly diff?: readonly DiffLine[];
}

/** `gap`: the text says what is left out. */
export interface DiffLine {
  readonly kind: "same" | "removed" | "added" | "gap";
  readonly text: string;
}

/**
 * What happens to an open call when its turn goes on. `run`: it has not run yet. `run-again`: it may have run, and it
 * is safe to repeat. `ask`: it may have run, and its probe is asked first. `wait`: for a person, for a result from
 * outside, or for a tool that this program does not have. `settle`: its outcome is known. `tell-model`: it is closed,
 * and the model is told how far it got. `leave`: the provider runs it.
 */
export type CallDecision = "run" | "run-again" | "ask" | "wait" | "settle" | "tell-model" | "leave";

export function factsOf({ id }: OpenCall, { facts }: CallPolicy): CallFacts {
  return facts && Object.hasOwn(facts, id) ? (facts[id] ?? {}) : {};
}

/** The one rule for open calls (R5, R7, C4), for every adapter and surface. The first row that applies decides. */
export function decideCall(call: OpenCall, policy: CallPolicy): CallDecision {
  const { state, name, replay, approved } = call;
  const { runs, asks, tools } = policy;
  const known = factsOf(call, policy);
  if (state === "provider") return "leave";
  if (known.outcome) return "settle";
  if (known.waits) return "wait";
  if (state === "awaiting" || known.unapproved) return asks && approved !== false ? "wait" : "tell-model";
  if (!runs || known.mustNotRun || known.report !== undefined) return "tell-model";
  const rule = tools && (Object.hasOwn(tools, name) ? (tools[name] ?? null) : null);
  if (state === "never-started" || known.neverBegan) return rule === null ? "wait" : "run";
  if (state !== "outcome-unknown") return "tell-model";
  if (replay === "safe") {
    if (rule === null) return "wait";
    if (rule === undefined || rule.replay === "safe") return "run-again";
  }
  // While its process runs, "did not happen" would not be the last word.
  if (!(rule === undefined || rule === null ? call.probe : rule.probe) || known.process?.running) return "tell-model";
  return rule === null ? "wait" : "ask";
}
