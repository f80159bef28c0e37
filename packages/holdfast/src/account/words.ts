import type { DraftContent } from "../conversation/draft-state.ts";
import type { Holder } from "../journal/contract.ts";
import { endedAs, type SessionState } from "../session-state.ts";
import { oneLine } from "../text/one-line.ts";
import type { CallFacts } from "../view/decide-call.ts";
import type { Interruption, OpenCall, SettledCall } from "../view/interruption.ts";
import { PROBED, stepWords } from "../view/model-words.ts";

export type CutOff = Pick<Interruption<unknown>, "startedAt" | "lastAt" | "resumes" | "answered" | "how">;

/** `running`: now, in its agent or in a process that outlived it. `ended`: since then, with a known outcome. */
export type CallState = OpenCall["state"] | "running" | "ended";

// The words for people, once for all surfaces. Texts from the journal are on one line, without control characters.

const REASON_CHARS = 300;
const NAME_CHARS = 80;

const CALLS: { readonly [S in CallState]: string } = {
  "never-started": "never started, safe to run",
  running: "running",
  ended: "has ended since",
  "outcome-unknown": "started, outcome unknown",
  unrecorded: "may have run: its start was not recorded",
  awaiting: "waiting for approval, has not run",
  provider: "run by the provider, outcome unknown",
};

/** How far a call got. */
export function callWords(
  state: CallState,
  facts: CallFacts,
  call: Pick<OpenCall, "approved" | "unstarted" | "steps">,
): string {
  const words = stateWords(state, facts, call);
  // Of a call that has ended, the outcome counts.
  const further = state === "ended" ? null : stepWords(call.steps);
  return further === null ? words : `${words}; ${further}`;
}

function stateWords(
  state: CallState,
  { process }: CallFacts,
  { approved, unstarted }: Pick<OpenCall, "approved" | "unstarted">,
): string {
  if (process?.running) return `still running as process ${process.pid}`;
  if (process?.exitCode !== undefined && state === "ended") return `has since exited with status ${process.exitCode}`;
  if (state === "never-started" && unstarted !== undefined) return `${settledWords(unstarted, true)}, safe to run`;
  return state === "awaiting" && approved === false ? "denied, has not run" : CALLS[state];
}

/** Where it is known from what happened to a call, or to a step of one. */
export function settledWords(source: string, isUnstarted: boolean): string {
  const what = isUnstarted ? "did not take effect" : "its outcome is known";
  return source === PROBED ? `settled by asking the service: ${what}` : what;
}

/** What happened to a turn: a phrase that follows the turn's number, or stands alone. */
export function cutOffWords(how: Interruption<unknown>["how"]): string {
  switch (how.kind) {
    case "killed":
      return "interrupted: its process died";
    case "signal":
      return `interrupted by ${oneLine(how.signal, NAME_CHARS)}`;
    case "aborted": {
      if (endedAs("aborted", how.by) === "cut") return "interrupted: its program was closed";
      const reason = how.reason ? ` (${oneLine(how.reason, REASON_CHARS)})` : "";
      return `stopped by ${oneLine(how.by, NAME_CHARS) || "the application"}${reason}`;
    }
    case "failed":
      return `failed: ${oneLine(how.error, REASON_CHARS).replace(/\.$/, "") || "unknown error"}`;
    case "handed-over":
      return "handed over: it continues with the next process";
    case "suspended":
      if (how.parked !== undefined)
        return `parked after ${how.parked} ${how.parked === 1 ? "attempt" : "attempts"} without progress: ${oneLine(how.reason, REASON_CHARS)}`;
      if (how.until !== undefined) return `paused until ${timeWords(how.until)} (${oneLine(how.reason, REASON_CHARS)})`;
      return isApproval(how.reason) ? "waiting for approval" : `waiting: ${oneLine(how.reason, REASON_CHARS)}`;
  }
}

/** "2026-11-19 14:05 UTC": whoever reads it may be elsewhere. */
function timeWords(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}

/** The reasons with which Holdfast's own programs and adapters suspend a turn for a person's decision. */
function isApproval(reason: string): boolean {
  return reason === "permission" || reason === "approval" || reason === "interrupt";
}

interface Facts {
  readonly state: SessionState;
  readonly holder: Holder | null;
  readonly interruption: CutOff | null;
  readonly settled: readonly SettledCall[];
  readonly queued: number;
}

export function statusWords({ state, holder, interruption, queued }: Omit<Facts, "settled">): string {
  const prompts = queued === 0 ? "" : queued === 1 ? ", a prompt is queued" : `, ${queued} prompts are queued`;
  if (interruption) return cutOffWords(interruption.how) + prompts;
  return (state === "running" && holder ? `running in ${holderWords(holder)}` : state) + prompts;
}

/** At most this many settled calls are named; the others are counted. */
const SETTLED_MAX = 20;

export function detailLines(
  { interruption, settled }: Pick<Facts, "interruption" | "settled">,
  draft: DraftContent | null,
): string[] {
  const lines: string[] = [];
  const { resumes = 0, answered = false } = interruption ?? {};
  if (resumes > 0) lines.push(`It had been resumed ${resumes === 1 ? "once" : `${resumes} times`}.`);
  if (answered) lines.push("The model had answered: only the end of the turn is missing.");
  const streamed = draft && interruption ? draft.text.length + draft.reasoning.length : 0;
  if (streamed > 0) lines.push(`${streamed} characters of the answer had been streamed.`);
  // One that did not happen is among the calls without a result.
  const known = settled.filter(({ unstarted }) => !unstarted);
  for (const { name, source } of known.slice(0, SETTLED_MAX))
    lines.push(`The call of ${JSON.stringify(oneLine(name, NAME_CHARS))}: ${settledWords(source, false)}.`);
  if (known.length > SETTLED_MAX) lines.push(`${known.length - SETTLED_MAX} more calls were settled.`);
  return lines;
}

/** A process, as people are told which one has a session open. */
export function holderWords({ app, pid, host }: Holder): string {
  return `${programWords(app)} (process ${pid} on ${oneLine(host, NAME_CHARS)})`;
}

export function programWords(app: string): string {
  return app === "" ? "another program" : JSON.stringify(oneLine(app, NAME_CHARS));
}
