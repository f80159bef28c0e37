import { spawn } from "node:child_process";
import { appendFileSync, closeSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

/**
 * An agent in plain lines, for what the SDK would not let an agent do. Its first argument is a JSON object:
 * - `can` goes into its capabilities;
 * - `answers` maps a method to what it answers (`null`: nothing, ever; `{ error }`: an error);
 * - `after` maps a method to the updates that follow;
 * - `trace`: a file that gets a line with the method and the parameters of everything that it is told or asked;
 * - `log`: what it writes to standard error when it begins;
 * - `once`: of all agents with the same file, the first one accepts settings;
 * - `fate`: a file that may name a method and what happens when the agent is asked for it, once: it `dies`, `answers`
 *   and dies, goes `mute` (closes its output and lives), or goes `deaf` (closes its input and lives).
 *
 * A prompt is a list of steps, one for each text block: `ask` requests permission and waits for the answer, `call
 * <method>` requests that of the editor, `die` ends the process, `abandon` does too and leaves a process behind that
 * nothing connects with it but its output, `wait` never answers, `hold` answers when it is cancelled, `touch <path>`
 * makes a file, `told` says what it was told to set, `of <session> <text>` says something in another session,
 * `raw <line>` writes a line, `endless` begins a line of more than 128 MiB, which a cancel ends, `garbage` begins one
 * that is no message, and anything else is said.
 */
type Any = Record<string, never> & { [name: string]: unknown };

const {
  can = {},
  version = 1,
  answers = {},
  after = {},
  once = null,
  fate = null,
  log = null,
  trace = null,
} = JSON.parse(process.argv[2] ?? "{}");
if (log !== null) console.error(log);
const isLater = once !== null && existsSync(once);
if (once !== null) writeFileSync(once, "");
let asked = 0;
let sessions = 0;
let endOfLine = "";
const told: string[] = [];
const held = new Map<unknown, () => void>();
const waiting = new Map<unknown, (answer: Any) => void>();
const send = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const say = (sessionId: unknown, update: object): void =>
  send({ method: "session/update", params: { sessionId, update } });
const text = (words: string) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words } });

// Nobody reads it any more.
process.stdout.on("error", () => process.exit(1));

/** As the SDK does, it counts its requests from 0. */
function ask(method: string, params: object): Promise<Any> {
  const id = asked++;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

async function prompt({ sessionId, prompt: blocks }: Any): Promise<object> {
  for (const { text: step } of blocks as unknown as { text: string }[]) {
    if (step === "die") process.exit(7);
    if (step === "abandon") {
      spawn("/bin/sleep", ["20"], { detached: true, env: {}, stdio: ["ignore", "inherit", "ignore"] }).unref();
      process.exit(7);
    }
    if (step === "hold")
      return new Promise((resolve) => {
        held.set(sessionId, () => resolve({ stopReason: "cancelled" }));
      });
    if (step === "wait") return new Promise(() => undefined);
    if (step === "endless" || step === "garbage") {
      const update = JSON.stringify({ method: "session/update", params: { sessionId, update: text("x") } });
      process.stdout.write(step === "endless" ? update.slice(0, update.indexOf('x"')) : "not JSON ");
      for (let mebibytes = 0; mebibytes < 129; mebibytes++) process.stdout.write("x".repeat(2 ** 20));
      endOfLine = '"}}}}\n';
      return new Promise(() => undefined);
    }
    if (step.startsWith("raw ")) process.stdout.write(`${step.slice(4)}\n`);
    else if (step.startsWith("of ")) say(step.split(" ")[1], text(step.split(" ").slice(2).join(" ")));
    else if (step.startsWith("call ")) {
      const { result, error } = await ask(step.slice(5), { sessionId, secret: "of the agent" });
      say(sessionId, text(`answer to ${step.slice(5)}: ${JSON.stringify(result ?? error)}`));
    } else if (step === "told") say(sessionId, text(told.join(" ")));
    else if (step.startsWith("touch ")) writeFileSync(step.slice(6), "");
    else if (step.startsWith("ask")) {
      const toolCall = { toolCallId: step, title: step };
      const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];
      const { result } = await ask("session/request_permission", { sessionId, toolCall, options });
      say(sessionId, text(`answer to ${step}: ${JSON.stringify(result)}`));
    } else if (step.startsWith("{")) say(sessionId, JSON.parse(step));
    else say(sessionId, text(step));
  }
  return { stopReason: "end_turn" };
}

async function answerTo(method: string, params: Any): Promise<object | null> {
  if (method in answers) {
    const given = answers[method];
    if (given?.asks) await ask(given.asks, { sessionId: params["sessionId"] });
    return given === null ? null : given.error ? { error: given.error } : { result: given };
  }
  if (method === "initialize") return { result: { protocolVersion: version, agentCapabilities: can } };
  if (method === "session/new") return { result: { sessionId: `s${process.pid}-${++sessions}` } };
  if (method === "session/prompt") return { result: await prompt(params) };
  const { sessionId: _, ...rest } = params;
  if (method.startsWith("session/set_") && isLater) return { error: { code: -32602, message: "not any more" } };
  if (method.startsWith("session/set_")) told.push(Object.values(rest).join("="));
  return { result: {} };
}

/** What happens now, if it is to happen at this method. */
function fateAt(method: string): string | null {
  if (fate === null || !existsSync(fate)) return null;
  const [named, how = null] = readFileSync(fate, "utf8").split(" ");
  if (named !== method) return null;
  rmSync(fate);
  return how;
}

/** It lives, and nobody can talk to it any more. */
function closed(descriptor: 0 | 1): void {
  setInterval(() => undefined, 1000);
  closeSync(descriptor);
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "") continue;
  const { id, method, params = {}, ...answer } = JSON.parse(line);
  if (trace !== null && method !== undefined) appendFileSync(trace, `${method} ${JSON.stringify(params)}\n`);
  const now = method === undefined ? null : fateAt(method);
  if (now === "dies") process.exit(7);
  if (now === "mute") closed(1);
  if (now === "deaf") closed(0);
  if (method === undefined) {
    waiting.get(id)?.(answer);
    continue;
  }
  if (method === "session/cancel") {
    told.push("cancelled");
    held.get(params["sessionId"])?.();
    process.stdout.write(endOfLine);
    endOfLine = "";
  }
  if (id === undefined) continue;
  void answerTo(method, params).then((given) => {
    if (given === null) return;
    send({ id, ...given });
    if (now === "answers") process.stdout.write("", () => process.exit(7));
    for (const update of after[method] ?? []) say(params.sessionId, update);
  });
}
