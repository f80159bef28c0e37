import { spawn } from "node:child_process";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as passed } from "node:timers/promises";

/**
 * An agent in plain lines whose task has steps, each a tool call. It writes into a folder what really happens, and
 * looks there before it goes on, as an agent does that was told that an outcome is unknown:
 * - `ledger`: `begin <n>` and `end <n>`, before and after the effect of a step, and `found <n>` for one that it did not
 *   make again;
 * - `prompts`: each prompt that it got, as a line of JSON; `starts`: its pid, the method that opened its session, and
 *   the pid of a process that it leaves running.
 *
 * Its argument is a JSON object: `folder`; `steps`; `ms`, how long a step takes; `asks`, for permission before each;
 * `can`, its capabilities; `dies`, where it ends itself each time (`start`, `open`, `prompt`, `begin <n>`, `end <n>`,
 * or `begin` and `end` for each); `times`, how often it does (default: always); `error`, what it answers to a prompt.
 */
// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const {
  folder,
  steps = 3,
  ms = 5,
  asks = false,
  can = {},
  dies = null,
  times = null,
  error = null,
} = JSON.parse(process.argv[2] ?? "{}");
const file = (name: string): string => join(folder, name);
const linesOf = (name: string): string[] =>
  existsSync(file(name)) ? readFileSync(file(name), "utf8").split("\n").slice(0, -1) : [];
const note = (name: string, line: string): void => appendFileSync(file(name), `${line}\n`);
const send = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

process.stdout.on("error", () => process.exit(1));

/** Ends here, if it is to, after everything that it said has been written. */
async function reach(place: string): Promise<void> {
  if ((dies !== place && dies !== place.split(" ")[0]) || (times !== null && linesOf("deaths").length >= times)) return;
  note("deaths", place);
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  process.kill(process.pid, "SIGKILL");
  await passed(10_000);
}

const cancelled = new Set<string>();
const waiting = new Map<unknown, (answer: Any) => void>();
let asked = 0;

async function isAllowed(sessionId: string, toolCall: object): Promise<boolean> {
  if (!asks) return true;
  const id = asked++;
  const options = [
    { optionId: "yes", name: "Yes", kind: "allow_once" },
    { optionId: "no", name: "No", kind: "reject_once" },
  ];
  send({ id, method: "session/request_permission", params: { sessionId, toolCall, options } });
  const { result } = await new Promise<Any>((resolve) => waiting.set(id, resolve));
  return result?.outcome?.optionId === "yes";
}

async function work(sessionId: string): Promise<string> {
  const update = (one: object): void => send({ method: "session/update", params: { sessionId, update: one } });
  update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "I look. " } });
  for (let n = 1; n <= steps; n++) {
    if (cancelled.has(sessionId)) return "cancelled";
    const known = linesOf("ledger");
    if (known.includes(`end ${n}`) || known.includes(`found ${n}`)) continue;
    const toolCallId = `${process.pid}-${n}`;
    const call = { toolCallId, title: `Step ${n}`, kind: "execute", rawInput: { command: `step ${n}` } };
    update({ sessionUpdate: "tool_call", ...call, status: "pending" });
    if (!(await isAllowed(sessionId, call))) {
      update({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" });
      continue;
    }
    update({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
    const isBegun = known.includes(`begin ${n}`);
    note("ledger", `${isBegun ? "found" : "begin"} ${n}`);
    await reach(`begin ${n}`);
    await passed(ms);
    if (!isBegun) note("ledger", `end ${n}`);
    update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed" });
    await reach(`end ${n}`);
  }
  update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "All steps are done." } });
  return "end_turn";
}

async function answerTo(method: string, params: Any): Promise<object> {
  switch (method) {
    case "initialize":
      await reach("start");
      return { result: { protocolVersion: 1, agentCapabilities: can } };
    case "session/new":
    case "session/load":
    case "session/resume": {
      const child = spawn("/bin/sleep", ["1000"], { detached: true, stdio: "ignore" });
      note("starts", `${process.pid} ${method} ${child.pid}`);
      await reach("open");
      return { result: method === "session/new" ? { sessionId: `task-${process.pid}` } : {} };
    }
    case "session/prompt":
      note("prompts", JSON.stringify(params.prompt));
      cancelled.delete(params.sessionId);
      await reach("prompt");
      return error === null
        ? { result: { stopReason: await work(params.sessionId) } }
        : { error: { code: -32603, message: error } };
    default:
      return { result: {} };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "") continue;
  const { id, method, params, ...answer } = JSON.parse(line);
  if (method === undefined) waiting.get(id)?.(answer);
  else if (id === undefined) cancelled.add(params?.sessionId);
  else void answerTo(method, params).then((given) => send({ id, ...given }));
}
process.exit(0);
