import { createHash } from "node:crypto";
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { type Job, type Step, settle } from "./evidence/job.ts";
import type { KnownFacts, WantedCall } from "./evidence/known.ts";
import { writeProgress } from "./evidence/progress.ts";
import { readTalk, type Talk } from "./evidence/talk.ts";
import { type Failure, failureIn } from "./failures.ts";
import { jobOf } from "./tasks.ts";

export interface Reply {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly MadeCall[];
  readonly failure: Failure | null;
  readonly isSummary: boolean;
}

export interface MadeCall extends WantedCall {
  readonly id: string;
}

/** After this many calls the task is abandoned: something is wrong that more calls will not fix. */
const CALLS_MAX = 3_000;

/** Summaries in a row without progress between them. */
const IDLE_MAX = 12;

/** A pure function of the request: the same messages and tools give the same answer. */
export function replyTo({ prompt, tools, toolChoice }: LanguageModelV4CallOptions): Reply {
  const talk = readTalk(prompt);
  if (talk.isSummaryAsked) return said(summaryOf(talk), "I sum up what matters for going on.", true);
  const offered = toolChoice?.type === "none" ? [] : (tools ?? []).map(({ name }) => name);
  const failure = requestedFailure(talk);
  if (failure)
    return {
      ...said("This answer is about to fail, since the prompt asks for it. It never gets to its end.", ""),
      failure,
    };
  const made = talk.calls.length + (talk.carried?.made ?? 0);
  if (made > CALLS_MAX) return said(`I stop here: this task has taken ${made} calls.`, "");
  if ((talk.carried?.idle ?? 0) >= IDLE_MAX) {
    return said("I stop here: what this task needs to know does not fit into my window, and I go in circles.", "");
  }
  const { answers, step } = work(talk, known(talk, new Set(offered)));
  if (step?.kind === "call") {
    const ids = callIds(prompt, step.calls.length);
    const calls = step.calls.map((call, index) => ({ ...call, id: ids[index]! }));
    const thought = talk.interruptions > 0 ? `${resumedWords(talk)}${step.thought}` : step.thought;
    return { reasoning: thought, text: step.text ?? "", calls, failure: null, isSummary: false };
  }
  return said(
    answers.map(({ text }) => text).join("\n\n"),
    answers
      .map(({ thought }) => thought ?? "")
      .join("\n")
      .trim(),
  );
}

function said(text: string, reasoning: string, isSummary = false): Reply {
  return { reasoning, text, calls: [], failure: null, isSummary };
}

const PARALLEL_MAX = 8;

/** Fewer calls at once after each summary: otherwise the same results would overflow the window again. */
function known({ calls, carried }: Talk, tools: ReadonlySet<string> | null): KnownFacts {
  return { calls, tools, parallelMax: Math.max(1, PARALLEL_MAX >> (carried?.summaries ?? 0)) };
}

type Answer = Extract<Step, { kind: "answer" }>;

interface Work {
  readonly answers: readonly Answer[];
  /** The next step of the first unfinished task; null if all are finished. */
  readonly step: Step | null;
  readonly tasks: readonly { readonly text: string; readonly progress: Step["progress"] }[];
}

/** Works through the prompts in order; each one considers only the calls made since the previous one was finished. */
function work(talk: Talk, past: KnownFacts): Work {
  const answers: Answer[] = [];
  const tasks: { text: string; progress: Step["progress"] }[] = [];
  let step: Step | null = null;
  let from = 0;
  for (const [index, text] of talk.prompts.entries()) {
    const carried = talk.carried?.tasks[index];
    const before = carried?.text === text ? carried.progress : {};
    if (step) {
      tasks.push({ text, progress: before });
      continue;
    }
    const job = taskOf(text);
    const isLast = index === talk.prompts.length - 1;
    const now = isLast ? job.next(past, from, before) : settle(job, past, from, before);
    tasks.push({ text, progress: now.progress });
    if (now.kind === "call") step = now;
    else {
      answers.push(now);
      from = now.to;
    }
  }
  if (talk.prompts.length === 0) answers.push(jobOf("hello").next(past, 0, {}) as Answer);
  return { answers, step, tasks };
}

function taskOf(prompt: string): Job {
  const asked = failureIn(prompt);
  return jobOf(asked ? asked.task : prompt);
}

function requestedFailure(talk: Talk): Failure | null {
  const asked = failureIn(talk.prompts.at(-1) ?? "");
  // A failure followed by a task ends once the turn has been resumed.
  return asked && !(asked.task !== "" && talk.interruptions > 0) ? asked.failure : null;
}

function resumedWords({ calls, interruptions }: Talk): string {
  const doubt = calls.filter(({ outcome }) => outcome.kind === "unknown").length;
  const times = interruptions === 1 ? "once" : `${interruptions} times`;
  return `This turn was interrupted ${times}, and ${doubt === 0 ? "nothing is in doubt" : `${doubt} of my calls came to an unknown end`}. I go by what is known. `;
}

/** For people, except the last line: it lets this model continue the work after the summary. */
function summaryOf(talk: Talk): string {
  const { answers, step, tasks } = work(talk, known(talk, null));
  const doubt = talk.calls.filter(({ outcome }) => outcome.kind === "unknown");
  const lines = ["## The task", ""];
  for (const { text } of tasks) lines.push(...text.split("\n").map((line) => `> ${line}`), "");
  lines.push("## Done so far", "");
  for (const { text } of answers) lines.push(text.slice(0, 1_000), "");
  const count = talk.calls.length;
  lines.push(`${count} ${count === 1 ? "call was" : "calls were"} made since the task was stated.`, "");
  if (doubt.length > 0) {
    lines.push("## In doubt", "");
    for (const { name, input } of doubt.slice(-10)) lines.push(`- ${name} ${JSON.stringify(input).slice(0, 120)}`);
    lines.push("");
  }
  lines.push("## Still to be done", "");
  lines.push(step?.kind === "call" ? step.thought : "Nothing: the last prompt is answered.", "");
  const made = talk.calls.length + (talk.carried?.made ?? 0);
  const { through, interruptions, isOver } = talk;
  const isIdle = JSON.stringify(tasks) === JSON.stringify(talk.carried?.tasks);
  const idle = isIdle ? talk.carried!.idle + 1 : 0;
  const summaries = (talk.carried?.summaries ?? 0) + 1;
  lines.push(writeProgress({ tasks, through, interruptions, made, summaries, idle, isOver }));
  return lines.join("\n");
}

/** Different in each request of a conversation, since it grows; the same if a request is repeated. */
function callIds(prompt: LanguageModelV4Prompt, count: number): string[] {
  const digest = createHash("sha256").update(JSON.stringify(prompt)).digest("hex").slice(0, 16);
  return Array.from({ length: count }, (_, index) => `call_${digest}_${index + 1}`);
}
