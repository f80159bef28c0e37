import type { Message } from "./voices.ts";

/**
 * What an agent under test reports to the laboratory, one line of JSON each, on file descriptor 3 (kill/pipe.ts): `try`
 * before a call, `ok` when its promise has resolved. `t` is the agent's own clock, in milliseconds.
 */
export type AgentEvent =
  | { readonly e: "ready" }
  | { readonly e: "try"; readonly n: number; readonly op: Op }
  | { readonly e: "ok"; readonly n: number }
  /** The library refused, and said that nothing was recorded. */
  | { readonly e: "no"; readonly n: number; readonly code: string; readonly message: string }
  /** What the session showed when it was opened, in the form in which a reader sees it. */
  | { readonly e: "opened"; readonly session: string; readonly made: boolean; readonly shown: string }
  /** A request to the model. `settled`: no call is waiting for its result. */
  | { readonly e: "asked"; readonly view: readonly Message[]; readonly settled: boolean }
  /** The text is about to be shown to the user and pushed to the draft; then it has been. */
  | { readonly e: "push"; readonly draft: string; readonly text: string }
  | { readonly e: "pushed"; readonly draft: string; readonly chars: number; readonly t: number }
  /** Every timer that was due at `t` has run. */
  | { readonly e: "beat"; readonly t: number }
  /** A tool has had its effect. */
  | { readonly e: "effect"; readonly message: string; readonly call: string }
  | { readonly e: "at"; readonly point: string }
  /** The turns of this life are over; the agent waits to be killed. */
  | { readonly e: "idle" }
  | { readonly e: "done" }
  | { readonly e: "failed"; readonly message: string };

/** One call of the library. Recorded texts carry unique marks, which identify them when they come back. */
export type Op =
  | { readonly do: "create" }
  | { readonly do: "start"; readonly id: string; readonly message: Message; readonly queued: boolean }
  | { readonly do: "resume"; readonly turn: number; readonly draft: "discard" | "keep"; readonly calls: string }
  | {
      readonly do: "append";
      readonly id: string;
      readonly messages: readonly Message[];
      readonly by: "model" | "user" | "tools";
      readonly queued: boolean;
      readonly tokens: number;
    }
  | { readonly do: "draft"; readonly draft: string }
  | {
      readonly do: "commit";
      readonly draft: string;
      readonly id: string;
      readonly messages: readonly Message[];
      readonly tokens: number;
    }
  | { readonly do: "discard"; readonly draft: string }
  | { readonly do: "toolStarted"; readonly message: string; readonly call: string; readonly replay: "safe" | "never" }
  /** `late`: the turn was stopped, or the model was asked again, before it arrived. */
  | {
      readonly do: "toolEnded";
      readonly message: string;
      readonly call: string;
      readonly mark: string;
      readonly late: boolean;
    }
  | { readonly do: "suspend"; readonly calls: readonly string[] }
  | { readonly do: "end" | "abort" | "fail" }
  | { readonly do: "enqueue"; readonly id: string; readonly message: Message }
  | { readonly do: "dequeue"; readonly id: string }
  | { readonly do: "patch"; readonly id: string; readonly key: string; readonly value: string; readonly hides: boolean }
  | { readonly do: "note"; readonly name: string; readonly value: number }
  | { readonly do: "rename"; readonly title: string }
  | { readonly do: "usage"; readonly tokens: number }
  /** Ids of kept entries, and new messages. */
  | {
      readonly do: "replace";
      readonly items: readonly (string | Message)[];
      readonly reason: "compaction" | "clear" | "rewind";
    }
  /** The ids of the entries before the replacement that it undoes. */
  | { readonly do: "undo"; readonly before: readonly string[] }
  | { readonly do: "edit"; readonly ids: readonly string[]; readonly shown: readonly Message[] }
  | { readonly do: "close" };

/** The format of a mark: the life that made it, and a count. */
export const MARK = /«[a-z]\d+\.\d+»/g;

/** All marks in a value, in order. */
export function marksIn(value: unknown): string[] {
  return JSON.stringify(value)?.match(MARK) ?? [];
}

/** Calls after which the model may see another past: the application changed it (R1). */
export function changesPast(op: Op): boolean {
  return op.do === "replace" || op.do === "undo" || op.do === "edit" || (op.do === "patch" && op.hides);
}
