import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import type { How } from "../../../../../holdfast/src/view/interruption.ts";
import { boundaryWords, goOnWords, resultWords } from "../../../../../holdfast/src/view/model-words.ts";
import { SUMMARISE } from "../../../../src/agent/compaction.ts";
import { type MadeCall, type Reply, replyTo } from "../../../../src/models/offline/reply.ts";

/** The tools of the agent, in memory; they answer as src/tools do. */
export class Workbench {
  readonly files: Map<string, string>;
  /** Commands that have been run, in order. */
  readonly ran: string[] = [];
  readonly #commands: Readonly<Record<string, (files: Map<string, string>) => string>>;

  constructor(
    files: Readonly<Record<string, string>>,
    commands: Readonly<Record<string, (files: Map<string, string>) => string>> = {},
  ) {
    this.files = new Map(Object.entries(files));
    this.#commands = commands;
  }

  /** Throws what the tool would. */
  run(name: string, input: Readonly<Record<string, unknown>>): string {
    const path = String(input["path"] ?? ".");
    switch (name) {
      case "read":
        return this.#text(path) || `[${path} is empty.]`;
      case "write":
        this.files.set(path, String(input["content"]));
        return `Wrote ${path}.`;
      case "edit": {
        const text = this.#text(path);
        const places = text.split(String(input["old"]));
        if (places.length === 1) throw new Error(`The old text is not in ${path}. Nothing was changed.`);
        this.files.set(path, places.join(String(input["new"])));
        return `Changed ${path}: ${places.length - 1} places, starting at line 1.`;
      }
      case "list": {
        const home = path === "." ? "" : `${path}/`;
        const names = [...this.files.keys()]
          .filter((file) => file.startsWith(home))
          .map((file) => file.slice(home.length));
        return names.length > 0 ? names.sort().join("\n") : `[${path} contains nothing to list.]`;
      }
      case "search":
        return this.#search(new RegExp(String(input["pattern"]), "u"), path) || "[Nothing found.]";
      case "shell": {
        const command = String(input["command"]);
        this.ran.push(command);
        return this.#commands[command]?.(this.files) ?? "[no output]";
      }
      case "task":
        return `The sub-agent did: ${String(input["prompt"])}`;
      default:
        throw new Error(`There is no tool ${name}.`);
    }
  }

  #text(path: string): string {
    const text = this.files.get(path);
    if (text === undefined) throw new Error(`${path} does not exist.`);
    return text;
  }

  #search(pattern: RegExp, folder: string): string {
    const found: string[] = [];
    for (const [path, text] of [...this.files].sort()) {
      if (folder !== "." && !path.startsWith(`${folder}/`)) continue;
      for (const [index, line] of text.split("\n").entries()) {
        if (pattern.test(line)) found.push(`${path}:${index + 1}: ${line}`);
      }
    }
    return found.join("\n");
  }
}

export const TOOLS: LanguageModelV4FunctionTool[] = ["read", "write", "edit", "list", "search", "shell", "task"].map(
  (name) => ({ type: "function", name, inputSchema: { type: "object" } }),
);

export function request(prompt: LanguageModelV4Prompt, tools = TOOLS): LanguageModelV4CallOptions {
  return { prompt, tools };
}

export function user(text: string): LanguageModelV4Message {
  return { role: "user", content: [{ type: "text", text }] };
}

export function assistant(reply: Reply): LanguageModelV4Message {
  return {
    role: "assistant",
    content: [
      ...(reply.reasoning === "" ? [] : [{ type: "reasoning" as const, text: reply.reasoning }]),
      ...(reply.text === "" ? [] : [{ type: "text" as const, text: reply.text }]),
      ...reply.calls.map(({ id, name, input }) => ({
        type: "tool-call" as const,
        toolCallId: id,
        toolName: name,
        input: JSON.parse(JSON.stringify(input)) as unknown,
      })),
    ],
  };
}

type Output = Extract<LanguageModelV4Message, { role: "tool" }>["content"][number] & { type: "tool-result" };

export function result({ id, name }: MadeCall, output: Output["output"]): Output {
  return { type: "tool-result", toolCallId: id, toolName: name, output };
}

/** What the tool answers, as the SDK hands it to the model. */
export function outputOf(bench: Workbench, { name, input }: MadeCall): Output["output"] {
  try {
    return { type: "text", value: bench.run(name, input) };
  } catch (error) {
    return { type: "error-text", value: (error as Error).message };
  }
}

/** A source of chance that a seed repeats. */
export function chance(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

export interface Driven {
  readonly answer: string;
  readonly steps: number;
  readonly kills: number;
  readonly summaries: number;
  readonly ids: readonly string[];
  readonly messages: LanguageModelV4Prompt;
}

export interface Disturbance {
  readonly chance: (below: number) => number;
  readonly killsMax: number;
  readonly summariesMax: number;
}

const STEPS_MAX = 400;

/**
 * Works on the prompt until the model answers without a call. Disturbed: processes die and the conversation is summed
 * up, at random, and the library's words stand where something is missing.
 */
export function drive(bench: Workbench, prompt: string, disturbance?: Disturbance): Driven {
  let messages: LanguageModelV4Prompt = [user(prompt)];
  const ids: string[] = [];
  let kills = 0;
  let summaries = 0;
  for (let steps = 1; steps <= STEPS_MAX; steps++) {
    if (disturbance && summaries < disturbance.summariesMax && disturbance.chance(6) === 0) {
      messages = summedUp(messages, prompt, disturbance.chance);
      summaries++;
    }
    const reply = replyTo(request(messages));
    const isKilled = disturbance !== undefined && kills < disturbance.killsMax && disturbance.chance(3) === 0;
    if (isKilled) {
      kills++;
      messages = killed(bench, messages, reply, disturbance.chance);
      if (messages.at(-1)?.role === "tool") ids.push(...reply.calls.map(({ id }) => id));
      continue;
    }
    messages = [...messages, assistant(reply)];
    if (reply.calls.length === 0) return { answer: reply.text, steps, kills, summaries, ids, messages };
    ids.push(...reply.calls.map(({ id }) => id));
    messages.push({ role: "tool", content: reply.calls.map((call) => result(call, outputOf(bench, call))) });
  }
  throw new Error(`no end after ${STEPS_MAX} steps; the last: ${JSON.stringify(messages.slice(-4))}`);
}

const ENDS: readonly How[] = [
  { kind: "killed" },
  { kind: "signal", signal: "SIGTERM" },
  { kind: "aborted", by: "user" },
  { kind: "failed", error: "the disk was full" },
];

/** Somewhere between the request and the last result; then the turn is taken up again, or the user says to go on. */
function killed(
  bench: Workbench,
  before: LanguageModelV4Prompt,
  reply: Reply,
  below: (below: number) => number,
): LanguageModelV4Prompt {
  const how = ENDS[below(ENDS.length)]!;
  const messages = [...before];
  const isRecorded = below(4) > 0;
  const isCutOff = !isRecorded && reply.text !== "" && below(2) === 0;
  if (isCutOff) messages.push({ role: "assistant", content: [{ type: "text", text: reply.text.slice(0, 10) }] });
  if (isRecorded) {
    messages.push(assistant(reply));
    const content = reply.calls.map((call) => {
      switch (below(4)) {
        case 0:
          return result(call, { type: "error-text", value: resultWords("never-started", how) });
        case 1:
          return result(call, { type: "error-text", value: resultWords("outcome-unknown", how) });
        case 2:
          outputOf(bench, call);
          return result(call, {
            type: "error-text",
            value: resultWords(below(2) === 0 ? "outcome-unknown" : "unrecorded", how),
          });
        default:
          return result(call, outputOf(bench, call));
      }
    });
    if (content.length > 0) messages.push({ role: "tool", content });
  }
  const nothing = { started: [], ended: [], failed: [] };
  if (below(3) > 0) messages.push(user(goOnWords(how, nothing, isCutOff)));
  else messages.push(user(boundaryWords(how, nothing, isCutOff)), user("continue"));
  return messages;
}

/**
 * As src/agent/compaction.ts does it: the summary, the prompt if it is not among the newest, and the newest messages.
 */
function summedUp(
  messages: LanguageModelV4Prompt,
  prompt: string,
  below: (below: number) => number,
): LanguageModelV4Prompt {
  const { text } = replyTo(request([...messages, user(SUMMARISE)], []));
  let tail = messages.slice(messages.length - below(5));
  while (tail[0]?.role === "tool") tail = tail.slice(1);
  const isKept = tail.some((message) => JSON.stringify(message) === JSON.stringify(user(prompt)));
  return [user(`[Summary of the conversation so far]\n\n${text}`), ...(isKept ? [] : [user(prompt)]), ...tail];
}
