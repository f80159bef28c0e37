import { batch, type Job, type Step, several } from "../evidence/job.ts";
import {
  describeDenial,
  FAILED_MAX,
  has,
  type KnownFacts,
  lookAt,
  oneLine,
  type WantedCall,
  wasInterruptedTooOften,
} from "../evidence/known.ts";
import { hasPassed } from "../evidence/output.ts";

export interface Command {
  readonly command: string;
  /** A file that exists once the command has done its work, to check it by. */
  readonly makes?: string;
  /** Running it twice is harmless. */
  readonly repeatable: boolean;
}

type CommandOutcome =
  | { readonly state: "ran"; readonly text: string; readonly passed: boolean; readonly to: number }
  | { readonly state: "hopeless"; readonly why: string; readonly to: number }
  /** `tried`: it may already have run. */
  | { readonly state: "ask"; readonly calls: readonly WantedCall[]; readonly tried?: boolean };

/** Commands that only read, or have the same effect when run twice. */
const HARMLESS =
  /^(ls|cat|grep|wc|head|tail|find|echo|printf|true|false|test|sleep|seq|pwd|date|mkdir -p|touch|sort|diff|stat|node --test|node --check|npm (run )?(-s )?(test|check|lint|build)|npx (vitest|tsc))\b/;

export function isRepeatable(command: string): boolean {
  if (command.includes(">>")) return false;
  return command.split(/&&|\|\||[;|]/).every((part) => HARMLESS.test(part.trim()));
}

/**
 * "run npm test". If the outcome is unknown, runs it again only if the file that it `makes` is missing or, without one,
 * if repeating is harmless.
 */
export function runJob(command: Command): Job {
  return {
    title: `run ${command.command}`,
    next(known, from, before): Step {
      if (typeof before["text"] === "string")
        return { kind: "answer", text: before["text"], to: from, progress: before };
      const ran = runOf(known, command, from, before["tried"] === true);
      if (ran.state === "ask") {
        const isCheck = ran.calls[0]?.name === "read";
        const thought = isCheck
          ? `Whether \`${command.command}\` ran is not known: I look for ${command.makes}.`
          : `I run \`${command.command}\`.`;
        return { kind: "call", calls: ran.calls, thought, progress: { tried: ran.tried === true } };
      }
      const text =
        ran.state === "hopeless"
          ? `There is no result of \`${command.command}\`: ${ran.why}.`
          : `\`${command.command}\` ${ran.passed ? "succeeded" : "failed"}${ran.text.trim() === "" ? "." : `:\n\n\`\`\`\n${ran.text.trim().slice(-2_000)}\n\`\`\``}`;
      return { kind: "answer", text, to: ran.to, progress: { text: text.slice(0, 500) } };
    },
  };
}

/** `isInDoubt`: a summary says that it may have run before. */
function runOf(known: KnownFacts, wanted: Command, from: number, isInDoubt = false): CommandOutcome {
  const { command } = wanted;
  if (!has(known, "shell")) return { state: "hopeless", why: 'there is no tool "shell"', to: from };
  const mine = known.calls
    .map((call, at) => ({ call, to: at + 1 }))
    .slice(from)
    .filter(({ call }) => call.name === "shell" && call.input["command"] === command);
  const refused = mine.find(({ call }) => call.outcome.kind === "denied");
  if (refused) return { state: "hopeless", why: describeDenial(refused.call.outcome.text), to: refused.to };
  const tries = mine.filter(({ call }) => call.outcome.kind !== "not-run");
  // The first one that ended: later ones belong to other steps.
  const first = tries.find(({ call }) => call.outcome.kind !== "unknown");
  if (first) {
    const { kind, text } = first.call.outcome;
    return { state: "ran", text, passed: kind !== "failed" && hasPassed(text), to: first.to };
  }
  const last = tries.at(-1);
  if (wasInterruptedTooOften(mine.map(({ call }) => call))) {
    return { state: "hopeless", why: "it was interrupted too often", to: last?.to ?? from };
  }
  if (last || isInDoubt) return inDoubt(known, wanted, last?.to ?? from);
  return { state: "ask", calls: [{ name: "shell", input: { command } }] };
}

/** The command may have run, with an unknown outcome. */
function inDoubt(known: KnownFacts, { command, makes, repeatable }: Command, to: number): CommandOutcome {
  const again: CommandOutcome = { state: "ask", calls: [{ name: "shell", input: { command } }], tried: true };
  if (makes !== undefined && has(known, "read")) {
    const found = lookAt(known, makes, to);
    if (found.state === "ask") return { state: "ask", calls: found.calls, tried: true };
    if (found.state === "known") return { state: "ran", text: `(${makes} is there)`, passed: true, to: found.to };
    return found.state === "missing" ? again : { state: "hopeless", why: found.why, to: found.to };
  }
  if (repeatable) return again;
  const why =
    "it was interrupted, and may have taken effect. I do not run it twice without being told. Ask again if it is safe";
  return { state: "hopeless", why, to };
}

/** "delegate: <task>": one sub-agent per task, all at once. */
export function delegateJob(prompts: readonly string[]): Job {
  return {
    title: `delegate ${several(prompts.length, "task")}`,
    next(known, from, before): Step {
      const answers = { ...(before["answers"] as Record<string, string> | undefined) };
      const calls: WantedCall[] = [];
      let to = from;
      for (const prompt of prompts) {
        if (prompt in answers) continue;
        const asked = askOf(known, prompt, from);
        if (asked === null) {
          calls.push({ name: "task", input: { prompt } });
          continue;
        }
        to = Math.max(to, asked.to);
        answers[prompt] = asked.text;
      }
      const progress = { answers };
      if (calls.length > 0) {
        const thought = `I hand ${several(calls.length, "task")} to agents of their own.`;
        return { kind: "call", calls: batch(known, calls), thought, progress };
      }
      const text = prompts.map((prompt) => `**${oneLine(prompt)}**\n\n${answers[prompt] ?? ""}`).join("\n\n");
      return { kind: "answer", text, to, progress };
    },
  };
}

/** Null: still to be asked. Asking a sub-agent again is safe: like this model, it acts on what it finds. */
function askOf(known: KnownFacts, prompt: string, from: number): { readonly text: string; readonly to: number } | null {
  if (!has(known, "task")) return { text: "Not done: there is no tool to delegate with.", to: from };
  let failed = 0;
  let interrupted = 0;
  for (let at = from; at < known.calls.length; at++) {
    const { name, input, outcome } = known.calls[at]!;
    if (name !== "task" || input["prompt"] !== prompt) continue;
    const to = at + 1;
    if (outcome.kind === "done" || outcome.kind === "forgotten") return { text: outcome.text.slice(0, 2_000), to };
    if (outcome.kind === "denied") return { text: `Not done: ${describeDenial(outcome.text)}.`, to };
    if (outcome.kind === "failed" && ++failed >= FAILED_MAX) {
      return { text: `Not done: ${oneLine(outcome.text)}`, to };
    }
    if (outcome.kind !== "failed" && ++interrupted >= 60) return { text: "Not done: interrupted too often.", to };
  }
  return null;
}
